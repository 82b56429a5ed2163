// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"testing"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// signAs signs like Cosmian KMS, which reads only the name of the whole signature algorithm. Without a name, it uses PSS, and ECDSA
// with SHA-256. The mask generator uses SHA-1 unless a digest is named.
func signAs(private crypto.Signer, request *payloads.SignRequestPayload) ([]byte, error) {
	p := request.CryptographicParameters
	hash := map[kmip.DigitalSignatureAlgorithm]crypto.Hash{
		kmip.DigitalSignatureAlgorithmSHA_256WithRSAEncryption: crypto.SHA256, kmip.DigitalSignatureAlgorithmECDSAWithSHA256: crypto.SHA256,
		kmip.DigitalSignatureAlgorithmSHA_384WithRSAEncryption: crypto.SHA384, kmip.DigitalSignatureAlgorithmECDSAWithSHA384: crypto.SHA384,
		kmip.DigitalSignatureAlgorithmSHA_512WithRSAEncryption: crypto.SHA512, kmip.DigitalSignatureAlgorithmECDSAWithSHA512: crypto.SHA512,
	}[p.DigitalSignatureAlgorithm]
	opts := crypto.SignerOpts(hash)
	_, isRSA := private.(*rsa.PrivateKey)
	switch {
	case isRSA && (hash == 0 || p.DigitalSignatureAlgorithm == kmip.DigitalSignatureAlgorithmRSASSA_PSS):
		hash = map[kmip.HashingAlgorithm]crypto.Hash{kmip.HashingAlgorithmSHA_256: crypto.SHA256, kmip.HashingAlgorithmSHA_384: crypto.SHA384}[p.HashingAlgorithm]
		if p.MaskGenerator != kmip.MaskGeneratorMGF1 || p.MaskGeneratorHashingAlgorithm != p.HashingAlgorithm {
			return nil, errors.New("a mask generator with SHA-1")
		}
		opts = &rsa.PSSOptions{SaltLength: int(*p.SaltLength), Hash: hash}
	case hash == 0:
		hash = crypto.SHA256
		opts = hash
	}
	digest := request.DigestedData
	if digest == nil {
		state := hash.New()
		state.Write(request.Data)
		digest = state.Sum(nil)
	}
	return private.Sign(rand.Reader, digest, opts)
}

// direct signs over one connection.
type direct struct {
	signer
	session *Session
}

func (d *direct) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.ask(ctx, opts, &payloads.SignRequestPayload{DigestedData: digest})
}

func (d *direct) SignMessage(ctx context.Context, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.ask(ctx, opts, &payloads.SignRequestPayload{Data: message})
}

func (d *direct) ask(ctx context.Context, opts crypto.SignerOpts, request *payloads.SignRequestPayload) (signature []byte, err error) {
	if request.CryptographicParameters, err = d.parameters(opts); err != nil {
		return nil, err
	}
	reply, err := call[*payloads.SignResponsePayload](ctx, d.session, "key", request)
	if err != nil {
		return nil, err
	}
	return reply.SignatureData, nil
}

func TestAServerThatLooksAtTheNameOfTheSignatureSignsAsItIsAsked(t *testing.T) {
	onRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	onP256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		private crypto.Signer
		opts    crypto.SignerOpts
	}{
		"PKCS #1 v1.5 with SHA-256": {onRSA, crypto.SHA256},
		"PKCS #1 v1.5 with SHA-384": {onRSA, crypto.SHA384},
		"PSS with SHA-384":          {onRSA, &rsa.PSSOptions{SaltLength: 48, Hash: crypto.SHA384}},
		"ECDSA with SHA-256":        {onP256, crypto.SHA256},
		"ECDSA with SHA-512":        {onP256, crypto.SHA512},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := (&memory{private: test.private}).session(t)
			key, err := keys.NewRemoteSigning("key", test.private.Public(), &direct{signer{public: test.private.Public()}, s}, nil)
			if err != nil {
				t.Fatal(err)
			}
			// The key verifies what the server has signed.
			_, ofMessage := crypto.SignMessage(key.Signer(t.Context()), rand.Reader, []byte("message"), test.opts)
			digest := test.opts.HashFunc().New()
			digest.Write([]byte("message"))
			_, ofDigest := key.Signer(t.Context()).Sign(rand.Reader, digest.Sum(nil), test.opts)
			if err := errors.Join(ofMessage, ofDigest); err != nil {
				t.Error(err)
			}
		})
	}
}
