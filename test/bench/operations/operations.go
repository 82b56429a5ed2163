// SPDX-License-Identifier: Apache-2.0

// Package operations has the broker's operations without the broker: without identity of
// callers, limits and metrics. The server floor, with which the broker is compared, serves
// them. The benchmark also calls them in its own process.
package operations

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// Names of profiles. Default is the profile of the catalogue: SHA3-512, and certificates
// under P-384.
const (
	Default = "Default"
	SHA256  = "SHA-256"
	AESGCM  = "AES-GCM"
)

// Profiles is the profile file of everything that is measured.
var Profiles = append(append([]byte(nil), catalogue.Profiles...), `
- Name: SHA-256
  API:
    HashData: {HashAlg: sha-256}
- Name: AES-GCM
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}
`...)

// Operations serves cryptobroker.v1.CryptoService.
type Operations struct {
	v1.UnimplementedCryptoServiceServer
	profiles *profile.Set
}

// New compiles the profiles.
func New() (*Operations, error) {
	set, problems := profile.Compile(profile.FileName, Profiles)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return &Operations{profiles: set}, nil
}

func (o *Operations) profile(name string) (*profile.Compiled, error) {
	p, ok := o.profiles.Lookup(name)
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "there is no profile %q", name)
	}
	return p, nil
}

// Digest appends a digest to dst and names the algorithm.
func (o *Operations) Digest(dst []byte, name string, input []byte) (digest []byte, algorithm string, err error) {
	p, err := o.profile(name)
	if err != nil {
		return nil, "", err
	}
	return engine.AppendDigest(dst, p.Hash(), input), p.Hash().Algorithm().String(), nil
}

// Certificate issues a certificate in DER from the fields of a request, which are in PEM.
func (o *Operations) Certificate(name, csr, caKey, caCertificate string) (der []byte, algorithm string, err error) {
	p, err := o.profile(name)
	if err != nil {
		return nil, "", err
	}
	certificate, err := engine.ParseCertificate("caCert", []byte(caCertificate))
	if err != nil {
		return nil, "", err
	}
	key, err := keys.ParsePrivateKey([]byte(caKey), p.Certificate().IssuerKeys().LargestGivenRSA())
	if err != nil {
		return nil, "", err
	}
	der, err = engine.IssueCertificate(p.Certificate(), engine.Issuer{Key: key, Certificate: certificate},
		engine.CertificateRequest{CSR: []byte(csr)}, time.Now())
	return der, p.Certificate().SignatureAlgorithmName(), err
}

// Encrypt encrypts with a key that came with the request.
func (o *Operations) Encrypt(name string, key, nonce, plaintext []byte) (sealed engine.Sealed, algorithm string, err error) {
	p, err := o.profile(name)
	if err != nil {
		return engine.Sealed{}, "", err
	}
	cipher, err := engine.NewAESGCM(key)
	if err != nil {
		return engine.Sealed{}, "", err
	}
	sealed, err = engine.Encrypt(p.Cipher(), cipher, nonce, plaintext, nil)
	return sealed, p.Cipher().Algorithm(), err
}

// HashData implements v1.CryptoServiceServer.
func (o *Operations) HashData(_ context.Context, request *v1.HashDataRequest) (*v1.HashDataResponse, error) {
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := o.Digest(buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v1.HashDataResponse{
		Metadata:    request.GetMetadata(),
		HashValue:   &v1.HashDataResponse_HashValueHex{HashValueHex: hex.EncodeToString(digest)},
		Descriptor_: &v1.CryptoDescriptor{Profile: request.GetProfile(), Operation: "HashData", Algorithm: algorithm},
	}, nil
}

// SignCertificate implements v1.CryptoServiceServer.
func (o *Operations) SignCertificate(_ context.Context, request *v1.SignCertificateRequest) (*v1.SignCertificateResponse, error) {
	der, algorithm, err := o.Certificate(request.GetProfile(), request.GetCsr(), request.GetCaPrivateKey(), request.GetCaCert())
	if err != nil {
		return nil, err
	}
	return &v1.SignCertificateResponse{
		Metadata:          request.GetMetadata(),
		SignedCertificate: &v1.SignCertificateResponse_Der{Der: der},
		Descriptor_:       &v1.CryptoDescriptor{Profile: request.GetProfile(), Operation: "SignCertificate", Algorithm: algorithm},
	}, nil
}

// EncryptData implements v1.CryptoServiceServer.
func (o *Operations) EncryptData(_ context.Context, request *v1.EncryptDataRequest) (*v1.EncryptDataResponse, error) {
	key, given := request.GetKeySource().GetSource().(*v1.KeySource_RawKey)
	if !given {
		return nil, fmt.Errorf("the request has no key")
	}
	sealed, algorithm, err := o.Encrypt(request.GetProfile(), key.RawKey, request.GetEncryptMetadata().GetNonce(), request.GetPlaintext())
	if err != nil {
		return nil, err
	}
	return &v1.EncryptDataResponse{
		Ciphertext:     sealed.Ciphertext,
		CipherMetadata: &v1.CipherMetadata{Nonce: sealed.Nonce, Tag: sealed.Tag},
		Metadata:       request.GetMetadata(),
		Descriptor_:    &v1.CryptoDescriptor{Profile: request.GetProfile(), Operation: "EncryptData", Algorithm: algorithm},
	}, nil
}
