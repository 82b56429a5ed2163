// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// load is a request that is sent repeatedly. Exactly one of its requests is set.
type load struct {
	name, about string
	hash        *v1.HashDataRequest
	certificate *v1.SignCertificateRequest
	encrypt     *v1.EncryptDataRequest
	health      *healthpb.HealthCheckRequest

	operations *operations.Operations
	// digest is the expected digest of a hash.
	digest []byte
}

var loadsAbout = []struct{ name, about string }{
	{"hash-32", "SHA3-512 of 32 bytes"},
	{"hash-4k", "SHA3-512 of 4 KiB"},
	{"hash-1m", "SHA3-512 of 1 MiB"},
	{"hash-1m-sha256", "SHA-256 of 1 MiB"},
	{"health", "health"},
	{"certificate", "certificate for P-256 under P-384"},
	{"encrypt", "AES-256-GCM of 1 KiB"},
}

func loadNames() []string {
	var names []string
	for _, l := range loadsAbout {
		names = append(names, l.name)
	}
	return names
}

// newLoad returns the load of a name.
func newLoad(name string, ops *operations.Operations) (*load, error) {
	at := slices.Index(loadNames(), name)
	l := &load{name: name, about: loadsAbout[at].about, operations: ops}
	metadata := &v1.Metadata{Id: "5e7c6ab5-1d3b-4b4e-a3a6-2d3c57d9d8a1"}
	hash := func(profile string, size int) error {
		l.hash = &v1.HashDataRequest{Profile: profile, Input: bytes.Repeat([]byte("input to hash..."), size/16), Metadata: metadata}
		if ops == nil {
			return nil
		}
		var err error
		l.digest, _, err = ops.Digest(nil, profile, l.hash.GetInput())
		return err
	}
	var err error
	switch name {
	case "hash-32":
		err = hash(operations.Default, 32)
	case "hash-4k":
		err = hash(operations.Default, 4<<10)
	case "hash-1m":
		err = hash(operations.Default, 1<<20)
	case "hash-1m-sha256":
		err = hash(operations.SHA256, 1<<20)
	case "health":
		l.health = &healthpb.HealthCheckRequest{}
	case "certificate":
		l.certificate = &v1.SignCertificateRequest{Profile: operations.Default, Metadata: metadata}
		l.certificate.Csr, l.certificate.CaPrivateKey, l.certificate.CaCert, err = certificateFiles()
	case "encrypt":
		l.encrypt = &v1.EncryptDataRequest{
			Profile:         operations.AESGCM,
			KeySource:       &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: bytes.Repeat([]byte{7}, 32)}},
			Plaintext:       make([]byte, 1<<10),
			EncryptMetadata: &v1.EncryptMetadata{Nonce: make([]byte, 12)},
			Metadata:        metadata,
		}
	}
	return l, err
}

// certificateFiles creates a certificate request and an issuer, in PEM.
func certificateFiles() (csr, caKey, caCertificate string, err error) {
	issuer, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		return "", "", "", err
	}
	subject, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", "", err
	}
	requested, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}}, subject)
	if err != nil {
		return "", "", "", err
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, own, own, issuer.Public(), issuer)
	if err != nil {
		return "", "", "", err
	}
	key, err := x509.MarshalPKCS8PrivateKey(issuer)
	if err != nil {
		return "", "", "", err
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE REQUEST", requested), text("PRIVATE KEY", key), text("CERTIFICATE", certificate), nil
}

// inProcess makes the call without any server.
func (l *load) inProcess(context.Context, int) error {
	switch {
	case l.hash != nil:
		digest, _, err := l.operations.Digest(make([]byte, 0, 64), l.hash.GetProfile(), l.hash.GetInput())
		return errors.Join(err, l.checkDigest(digest))
	case l.certificate != nil:
		r := l.certificate
		der, _, err := l.operations.Certificate(r.GetProfile(), r.GetCsr(), r.GetCaPrivateKey(), r.GetCaCert())
		return errors.Join(err, checkLength("a certificate", len(der), 200))
	default:
		r := l.encrypt
		sealed, _, err := l.operations.Encrypt(r.GetProfile(), r.GetKeySource().GetRawKey(), r.GetEncryptMetadata().GetNonce(), r.GetPlaintext())
		return errors.Join(err, checkLength("a ciphertext", len(sealed.Ciphertext), len(r.GetPlaintext())))
	}
}

func (l *load) checkDigest(digest []byte) error {
	if l.digest != nil && !bytes.Equal(digest, l.digest) {
		return fmt.Errorf("got the digest %x, want %x", digest, l.digest)
	}
	return nil
}

// checkHash checks a reply without making a slice of its digits.
func (l *load) checkHash(reply *v1.HashDataResponse) error {
	var digest [64]byte
	text := reply.GetHashValueHex()
	if len(text) > hex.EncodedLen(len(digest)) {
		return fmt.Errorf("got the digest %q", text)
	}
	n, err := hex.Decode(digest[:], []byte(text))
	return errors.Join(err, l.checkDigest(digest[:n]))
}

func checkLength(what string, got, least int) error {
	if got < least {
		return fmt.Errorf("got %s of %d bytes, want at least %d", what, got, least)
	}
	return nil
}
