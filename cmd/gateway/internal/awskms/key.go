// SPDX-License-Identifier: Apache-2.0

package awskms

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// contextName is the name of the entry of an encryption context that binds a wrapped key to the
// context of a request. Its value is the SHA-256 of the context in base64, because the service
// logs encryption contexts.
const contextName = "crypto-broker-context"

// find describes a key. The service hides the versions of a key, and each wrapped key contains
// its version. So keys have no versions here, because a version could be the id of any other key.
func (p *Provider) find(ctx context.Context, name keys.Name, _ *keys.Key) (*keys.Key, error) {
	if name.Version != "" {
		return nil, fmt.Errorf("%w: keys of AWS KMS have no versions that can be named, found %q", keys.ErrNotFound, name.Version)
	}
	if strings.HasPrefix(name.ID, "arn:") {
		return nil, fmt.Errorf("%w: found an ARN, expected a key id or alias/<name> of the provider's region", keys.ErrNotFound)
	}
	described, err := ask(ctx, p, p.client.DescribeKey, &kms.DescribeKeyInput{KeyId: &name.ID})
	if err != nil {
		return nil, err
	}
	found := described.KeyMetadata
	if found.KeyState != types.KeyStateEnabled {
		return nil, fmt.Errorf("%w: the key %s of AWS KMS is in the state %s, expected %s", keys.ErrUnusable, name.ID, found.KeyState, types.KeyStateEnabled)
	}
	// All later requests use the id that the name has now, so an alias that is moved meanwhile
	// does not mix two keys.
	k := key{p, aws.ToString(found.KeyId), name.ID}
	if found.KeySpec == types.KeySpecSymmetricDefault && found.KeyUsage == types.KeyUsageTypeEncryptDecrypt {
		return keys.NewWrapping(name.ID, &wrapper{k}), nil
	}
	return p.pair(ctx, k)
}

// pair returns a key pair.
func (p *Provider) pair(ctx context.Context, k key) (*keys.Key, error) {
	reply, err := ask(ctx, p, p.client.GetPublicKey, &kms.GetPublicKeyInput{KeyId: &k.id})
	if err != nil {
		return nil, err
	}
	public, _, err := keys.ParseVerifier(reply.PublicKey, algorithm.MaxRSASize)
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of AWS KMS %w", keys.ErrUnusable, k.name, err)
	}
	var found *keys.Key
	switch reply.KeyUsage {
	case types.KeyUsageTypeSignVerify:
		found, err = keys.NewRemoteSigning(k.name, public, &signer{k, public, reply.SigningAlgorithms}, p.certificates.Of(k.name))
	case types.KeyUsageTypeEncryptDecrypt, types.KeyUsageTypeKeyAgreement:
		found, err = k.opening(public, reply.KeyUsage)
	default:
		return nil, fmt.Errorf("%w: the key %s of AWS KMS is a key pair for %s, expected %s, %s or %s", keys.ErrUnusable, k.name, reply.KeyUsage,
			types.KeyUsageTypeSignVerify, types.KeyUsageTypeEncryptDecrypt, types.KeyUsageTypeKeyAgreement)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of AWS KMS: %w", keys.ErrUnusable, k.name, err)
	}
	return found, nil
}

// key is a key of the service. name is its name in profiles.
type key struct {
	provider *Provider
	id, name string
}

// signer implements keys.RemoteSigner.
type signer struct {
	key
	public     crypto.PublicKey
	algorithms []types.SigningAlgorithmSpec
}

// Sign implements keys.RemoteSigner.
func (s *signer) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	with, kind := s.algorithm(opts), types.MessageTypeDigest
	if _, whole := s.public.(ed25519.PublicKey); whole {
		kind = types.MessageTypeRaw
	}
	if !slices.Contains(s.algorithms, with) {
		return nil, fmt.Errorf("%w: the key %s of AWS KMS does not sign with the hash %s, and signs with %v", keys.ErrUnusable, s.name, opts.HashFunc(), s.algorithms)
	}
	reply, err := ask(ctx, s.provider, s.provider.client.Sign, &kms.SignInput{KeyId: &s.id, Message: digest, MessageType: kind, SigningAlgorithm: with})
	if err != nil {
		return nil, err
	}
	return reply.Signature, nil
}

// algorithm returns the name of an algorithm, or "" if the service has none.
func (s *signer) algorithm(opts crypto.SignerOpts) types.SigningAlgorithmSpec {
	if _, ok := s.public.(ed25519.PublicKey); ok {
		if opts.HashFunc() == 0 {
			return types.SigningAlgorithmSpecEd25519Sha512
		}
		return ""
	}
	hash, ok := map[crypto.Hash]string{crypto.SHA256: "SHA_256", crypto.SHA384: "SHA_384", crypto.SHA512: "SHA_512"}[opts.HashFunc()]
	if !ok {
		return ""
	}
	scheme := "ECDSA_"
	if _, ok := s.public.(*rsa.PublicKey); ok {
		scheme = "RSASSA_PKCS1_V1_5_"
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			if n := pss.SaltLength; n != rsa.PSSSaltLengthEqualsHash && n != opts.HashFunc().Size() && n != rsa.PSSSaltLengthAuto {
				return ""
			}
			scheme = "RSASSA_PSS_" // with a salt as long as the digest
		}
	}
	return types.SigningAlgorithmSpec(scheme + hash)
}

// wrapper implements keys.Wrapper. Only the service can unwrap what its symmetric key has
// wrapped.
type wrapper struct{ key }

// Algorithms implements keys.Wrapper.
func (w *wrapper) Algorithms() []string { return []string{algorithm.WrapAESGCM.String()} }

// Wrap implements keys.Wrapper.
func (w *wrapper) Wrap(ctx context.Context, name string, dataKey, additional []byte) ([]byte, error) {
	binding, err := w.binding(name, additional)
	if err != nil {
		return nil, err
	}
	reply, err := ask(ctx, w.provider, w.provider.client.Encrypt, &kms.EncryptInput{KeyId: &w.id, Plaintext: dataKey, EncryptionContext: binding})
	if err != nil {
		return nil, err
	}
	return reply.CiphertextBlob, nil
}

// Unwrap implements keys.Wrapper. The request names the key, so the service refuses data that
// another key has wrapped.
func (w *wrapper) Unwrap(ctx context.Context, name string, wrapped, additional []byte) ([]byte, error) {
	binding, err := w.binding(name, additional)
	if err != nil {
		return nil, err
	}
	if len(wrapped) == 0 {
		return nil, keys.ErrInvalidCiphertext
	}
	reply, err := ask(ctx, w.provider, w.provider.client.Decrypt, &kms.DecryptInput{KeyId: &w.id, CiphertextBlob: wrapped, EncryptionContext: binding})
	if err != nil {
		return nil, err
	}
	return reply.Plaintext, nil
}

// binding returns the encryption context of a request.
func (w *wrapper) binding(name string, additional []byte) (map[string]string, error) {
	if found, ok := algorithm.FindWrapping(name); !ok || found != algorithm.WrapAESGCM {
		return nil, fmt.Errorf("%w: the key %s of AWS KMS wraps with %s, found %q", keys.ErrUnusable, w.name, algorithm.WrapAESGCM, name)
	}
	if len(additional) == 0 {
		return nil, nil
	}
	digest := sha256.Sum256(additional)
	return map[string]string{contextName: base64.StdEncoding.EncodeToString(digest[:])}, nil
}
