// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"

	"filippo.io/mldsa"
	mldsax509 "filippo.io/mldsa/x509"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
)

// The errors of this file are the end of a sentence that begins with the place of the key, such
// as "rawKey" or the name of a file. They name only kinds and sizes of keys. They do not wrap
// errors of libraries, which may quote keys.

// ParseSigner reads one private key that signs, in PEM or DER: PKCS #8, PKCS #1 for RSA, or
// SEC 1 for ECDSA. ML-DSA keys have to be in the seed form of RFC 9881. An RSA key may have at
// most largestRSA bits, see [ParsePrivateKey].
func ParseSigner(data []byte, largestRSA int) (crypto.Signer, error) {
	data = pemtext.WithoutMark(data)
	if isDER(data) {
		if len(data) > maxPrivateKeySize {
			return nil, fmt.Errorf("has %d bytes, expected at most %d, more than an RSA key of 16384 bits has", len(data), maxPrivateKeySize)
		}
		signer, err := parsePrivateDER(data, largestRSA, "has content that")
		return usableSigner(signer, err, data)
	}
	if labels := labelsOf(data); len(labels) > 1 {
		return nil, fmt.Errorf("has %d PEM blocks, the second %s, expected one private key", len(labels), quoteLabel(labels[1]))
	}
	signer, err := ParsePrivateKey(data, largestRSA)
	if err == nil {
		return usableSigner(signer, nil, nil)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, err
	}
	defer clear(block.Bytes)
	return usableSigner(nil, err, block.Bytes)
}

// usableSigner returns the signer, or an error if its algorithm is not supported. err is the
// error of the parser. For an ML-DSA key that is not in the seed form, der leads to a better
// error.
func usableSigner(signer crypto.Signer, err error, der []byte) (crypto.Signer, error) {
	if err != nil && isMLDSA(der) {
		return nil, errors.New("is an ML-DSA key that is not in the seed form of RFC 9881, expected only the seed")
	}
	if err != nil {
		return nil, err
	}
	if _, err := usablePublic(signer.Public()); err != nil {
		return nil, err
	}
	return signer, nil
}

// isMLDSA reports whether der is an ML-DSA key in PKCS #8.
func isMLDSA(der []byte) bool {
	var outer struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.RawValue
	}
	return decodesAs(der, &outer) && isMLDSAKeyOID(outer.Algorithm.Algorithm)
}

// labelsOf returns the labels of all PEM blocks, except for EC PARAMETERS, which may be before
// a private key.
func labelsOf(text []byte) []string {
	var labels []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		clear(block.Bytes)
		if block.Type != labelParameters {
			labels = append(labels, block.Type)
		}
	}
	return labels
}

// ParseVerifier reads a key that verifies signatures: a public key (SubjectPublicKeyInfo) or a
// certificate in PEM, a public key in DER, or the private key. It does not read certificates
// after the first one, which belong to issuers. An RSA key may have at most largestRSA bits.
func ParseVerifier(data []byte, largestRSA int) (crypto.PublicKey, []*x509.Certificate, error) {
	data = pemtext.WithoutMark(data)
	if isDER(data) {
		public, err := parsePublicDER(data, largestRSA)
		if err == nil {
			return public, nil, nil
		}
		if explained := explainPublicKey(data); explained != nil {
			return nil, nil, err
		}
		signer, err := ParseSigner(data, largestRSA)
		if err != nil {
			return nil, nil, errors.New("has no key that can be read, expected the DER of a public or private key")
		}
		return signer.Public(), nil, nil
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, nil, errors.New("has no key, expected PEM with a public key, a certificate or a private key")
	}
	defer clear(block.Bytes)
	switch block.Type {
	case "PUBLIC KEY":
		public, err := parsePublic(data, largestRSA)
		return public, nil, err
	case "CERTIFICATE":
		chain, err := ParseCertificates(pem.EncodeToMemory(block), largestRSA)
		if err != nil {
			return nil, nil, err
		}
		return chain[0].PublicKey, chain, nil
	default:
		signer, err := ParseSigner(data, largestRSA)
		if err != nil {
			return nil, nil, err
		}
		return signer.Public(), nil, nil
	}
}

// parsePublic reads one public key in PEM.
func parsePublic(data []byte, largestRSA int) (crypto.PublicKey, error) {
	block, rest := pem.Decode(pemtext.WithoutMark(data))
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("has no public key, expected PEM with the label PUBLIC KEY")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("has more than one PEM block, expected one public key")
	}
	return parsePublicDER(block.Bytes, largestRSA)
}

func parsePublicDER(der []byte, largestRSA int) (crypto.PublicKey, error) {
	public, err := mldsax509.ParsePKIXPublicKey(der)
	if err != nil {
		if explained := explainPublicKey(der); explained != nil {
			return nil, explained
		}
		return nil, errors.New("has a public key that cannot be read, expected the SubjectPublicKeyInfo of an RSA, ECDSA, Ed25519 or ML-DSA key")
	}
	if err := CheckRSASize(public, largestRSA); err != nil {
		return nil, err
	}
	return usablePublic(public)
}

func usablePublic(public crypto.PublicKey) (crypto.PublicKey, error) {
	switch public.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey, *mldsa.PublicKey:
		return public, nil
	case nil: // crypto/x509 returns nil if it does not know the algorithm of the key
		return nil, errors.New("has a certificate for a key of an unknown algorithm, expected RSA, ECDSA or Ed25519")
	default:
		return nil, fmt.Errorf("has a public key of a kind that does not verify (%T), expected RSA, ECDSA, Ed25519 or ML-DSA", public)
	}
}

// maxChain is the maximum number of certificates that a chain may have.
const maxChain = 10

// ParseCertificates reads a chain of at most 10 certificates in PEM. The first is the certificate
// of the key. Each further certificate is of the issuer of the certificate before it. RSA keys
// may have at most largestRSA bits.
func ParseCertificates(data []byte, largestRSA int) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for rest := pemtext.WithoutMark(data); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("has a PEM block with the label %s, expected certificates only", quoteLabel(block.Type))
		}
		if len(chain) == maxChain {
			return nil, fmt.Errorf("has more than %d certificates", maxChain)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a certificate, number %d, that cannot be read: %w", len(chain)+1, err)
		}
		// The size is checked before the key verifies a signature, which takes long for
		// large keys.
		if err := CheckRSASize(certificate.PublicKey, largestRSA); err != nil {
			return nil, fmt.Errorf("has a certificate, number %d, whose key %w", len(chain)+1, err)
		}
		if i := len(chain); i > 0 {
			if err := chain[i-1].CheckSignatureFrom(certificate); err != nil {
				return nil, fmt.Errorf("has certificates out of order: number %d did not issue number %d (%w); expected the certificate of the key first, and each followed by its issuer", i+1, i, err)
			}
		}
		chain = append(chain, certificate)
	}
	if len(chain) == 0 {
		return nil, errors.New("has no certificate, expected PEM with the label CERTIFICATE")
	}
	if _, err := usablePublic(chain[0].PublicKey); err != nil {
		return nil, err
	}
	return chain, nil
}

// isDER reports whether the data begins with a sequence, as every key in DER does.
func isDER(data []byte) bool { return bytes.HasPrefix(data, []byte{0x30}) }

// Forget overwrites an Ed25519 private key that came with a request. Keys of other algorithms
// are inside types of Go's packages, where nobody can overwrite them.
func Forget(signer crypto.Signer) {
	if key, ok := signer.(ed25519.PrivateKey); ok {
		clear(key)
	}
}
