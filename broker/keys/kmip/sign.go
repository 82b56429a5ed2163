// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"fmt"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
)

// signer signs with a private key that stays in the key manager.
type signer struct {
	manager *Manager
	id      string
	public  crypto.PublicKey
}

var _ keys.RemoteMessageSigner = (*signer)(nil)

// algorithms are KMIP's names for a digest, alone and as a part of a signature. A name that KMIP
// does not have is 0, and is not sent.
type algorithms struct {
	hash       kmip.HashingAlgorithm
	rsa, ecdsa kmip.DigitalSignatureAlgorithm
}

var hashes = map[crypto.Hash]algorithms{
	crypto.SHA256:     {kmip.HashingAlgorithmSHA_256, kmip.DigitalSignatureAlgorithmSHA_256WithRSAEncryption, kmip.DigitalSignatureAlgorithmECDSAWithSHA256},
	crypto.SHA384:     {kmip.HashingAlgorithmSHA_384, kmip.DigitalSignatureAlgorithmSHA_384WithRSAEncryption, kmip.DigitalSignatureAlgorithmECDSAWithSHA384},
	crypto.SHA512:     {kmip.HashingAlgorithmSHA_512, kmip.DigitalSignatureAlgorithmSHA_512WithRSAEncryption, kmip.DigitalSignatureAlgorithmECDSAWithSHA512},
	crypto.SHA512_256: {hash: kmip.HashingAlgorithmSHA_512_256},
	crypto.SHA3_256:   {hash: kmip.HashingAlgorithmSHA_3_256, rsa: kmip.DigitalSignatureAlgorithmSHA3_256WithRSAEncryption},
	crypto.SHA3_384:   {hash: kmip.HashingAlgorithmSHA_3_384, rsa: kmip.DigitalSignatureAlgorithmSHA3_384WithRSAEncryption},
	crypto.SHA3_512:   {hash: kmip.HashingAlgorithmSHA_3_512, rsa: kmip.DigitalSignatureAlgorithmSHA3_512WithRSAEncryption},
}

// parameters returns the cryptographic parameters of a signature. They name the digest, the
// algorithm of the key and the algorithm of the signature, because some servers read only one of
// them.
func (s *signer) parameters(opts crypto.SignerOpts) (*kmip.CryptographicParameters, error) {
	hash, known := hashes[opts.HashFunc()]
	if !known {
		return nil, fmt.Errorf("%w: KMIP has no signature of this kind with the digest %s", keys.ErrUnusable, opts.HashFunc())
	}
	p := &kmip.CryptographicParameters{HashingAlgorithm: hash.hash}
	switch s.public.(type) {
	case *rsa.PublicKey:
		p.CryptographicAlgorithm, p.PaddingMethod, p.DigitalSignatureAlgorithm = kmip.CryptographicAlgorithmRSA, kmip.PaddingMethodPKCS1V1_5, hash.rsa
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			p.PaddingMethod, p.DigitalSignatureAlgorithm = kmip.PaddingMethodPSS, kmip.DigitalSignatureAlgorithmRSASSA_PSS
			// Without a name, the mask generator uses SHA-1 (KMIP 1.4, section 2.1.8).
			p.MaskGenerator, p.MaskGeneratorHashingAlgorithm = kmip.MaskGeneratorMGF1, hash.hash
			length := int32(opts.HashFunc().Size()) //nolint:gosec // the size of a digest
			if pss.SaltLength > 0 {
				length = int32(pss.SaltLength) //nolint:gosec // a few bytes
			}
			p.SaltLength = &length
		}
	case *ecdsa.PublicKey:
		p.CryptographicAlgorithm, p.DigitalSignatureAlgorithm = kmip.CryptographicAlgorithmECDSA, hash.ecdsa
	default:
		return nil, fmt.Errorf("%w: a key of type %T does not sign in a key manager, expected RSA or ECDSA", keys.ErrUnusable, s.public)
	}
	return p, nil
}

// Sign implements keys.RemoteSigner. KMIP signs digests from version 1.4 on.
func (s *signer) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.sign(ctx, opts, payloads.SignRequestPayload{DigestedData: digest}, kmip.V1_4, "1.4 to sign a digest")
}

// SignMessage implements keys.RemoteMessageSigner.
func (s *signer) SignMessage(ctx context.Context, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.sign(ctx, opts, payloads.SignRequestPayload{Data: message}, kmip.V1_2, "1.2 or newer to sign")
}

// sign makes a signature. request has the message or the digest. least is the first version of KMIP
// that has such requests, and expected describes it for an error.
func (s *signer) sign(ctx context.Context, opts crypto.SignerOpts, request payloads.SignRequestPayload, least kmip.ProtocolVersion, expected string) (signature []byte, err error) {
	request.UniqueIdentifier = s.id
	if request.CryptographicParameters, err = s.parameters(opts); err != nil {
		return nil, err
	}
	err = s.manager.Do(ctx, pool.Repeatable, func(ctx context.Context, session *Session) error {
		if v := session.Version(); v.ProtocolVersionMinor < least.ProtocolVersionMinor {
			return fmt.Errorf("%w: %s speaks KMIP %s, expected %s", keys.ErrUnusable, session.address, v, expected)
		}
		reply, err := call[*payloads.SignResponsePayload](ctx, session, s.id, &request)
		if err != nil {
			return err
		}
		signature = reply.SignatureData
		return nil
	})
	return signature, err
}
