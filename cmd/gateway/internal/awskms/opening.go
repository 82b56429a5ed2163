// SPDX-License-Identifier: Apache-2.0

package awskms

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/x509"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// opening returns a key pair that does not sign.
func (k key) opening(public crypto.PublicKey, usage types.KeyUsageType) (*keys.Key, error) {
	found, err := keys.NewOpening(k.name, public)
	if err != nil {
		return nil, err
	}
	if usage == types.KeyUsageTypeKeyAgreement {
		return found.WithExchanger(&exchanger{k}), nil
	}
	return found.WithDecrypter(&decrypter{k}), nil
}

// decrypter implements keys.RemoteDecrypter.
type decrypter struct{ key }

// oaep are the algorithms of the service by their hash.
var oaep = map[crypto.Hash]types.EncryptionAlgorithmSpec{
	crypto.SHA1: types.EncryptionAlgorithmSpecRsaesOaepSha1, crypto.SHA256: types.EncryptionAlgorithmSpecRsaesOaepSha256,
}

// DecryptOAEP implements keys.RemoteDecrypter.
func (d *decrypter) DecryptOAEP(ctx context.Context, hash crypto.Hash, ciphertext []byte) ([]byte, error) {
	with, known := oaep[hash]
	if !known {
		return nil, fmt.Errorf("%w: AWS KMS has RSA-OAEP with SHA-1 and SHA-256, found %s", keys.ErrUnusable, hash)
	}
	if len(ciphertext) == 0 {
		return nil, keys.ErrInvalidCiphertext
	}
	reply, err := ask(ctx, d.provider, d.provider.client.Decrypt, &kms.DecryptInput{KeyId: &d.id, CiphertextBlob: ciphertext, EncryptionAlgorithm: with})
	if err != nil {
		return nil, err
	}
	return reply.Plaintext, nil
}

// exchanger implements keys.RemoteExchanger.
type exchanger struct{ key }

// ECDH implements keys.RemoteExchanger.
func (e *exchanger) ECDH(ctx context.Context, other *ecdh.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(other)
	if err != nil {
		return nil, err
	}
	reply, err := ask(ctx, e.provider, e.provider.client.DeriveSharedSecret, &kms.DeriveSharedSecretInput{
		KeyId: &e.id, PublicKey: der, KeyAgreementAlgorithm: types.KeyAgreementAlgorithmSpecEcdh,
	})
	if err != nil {
		return nil, err
	}
	return reply.SharedSecret, nil
}
