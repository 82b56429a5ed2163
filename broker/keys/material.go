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
)

// The errors of this file continue a sentence that begins with where the key
// comes from, such as "rawKey" or the name of a file. They say nothing of its
// content but kinds and sizes: those of libraries are not passed on, since they
// may quote what they read.

// ParseSigner reads one private key that signs, in PEM or DER: PKCS #8, PKCS #1
// for RSA and SEC 1 for ECDSA. ML-DSA keys are in the seed form of RFC 9881. An
// RSA key has at most largestRSA bits, see ParsePrivateKey; so it has for
// ParseVerifier.
func ParseSigner(data []byte, largestRSA int) (crypto.Signer, error) {
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

// usableSigner judges what came of parsing a private key, whose DER tells more of
// one that was not taken.
func usableSigner(signer crypto.Signer, err error, der []byte) (crypto.Signer, error) {
	if err != nil && isMLDSA(der) {
		return nil, errors.New("is an ML-DSA key that is not in the seed form of RFC 9881, expected the seed alone")
	}
	if err != nil {
		return nil, err
	}
	if _, err := usablePublic(signer.Public()); err != nil {
		return nil, err
	}
	return signer, nil
}

// isMLDSA reports whether a DER is the PKCS #8 of an ML-DSA key.
func isMLDSA(der []byte) bool {
	var outer struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.RawValue
	}
	return decodesAs(der, &outer) && isMLDSAKeyOID(outer.Algorithm.Algorithm)
}

// labelsOf lists the labels of all PEM blocks but those that may stand before a
// private key.
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

// ParseVerifier reads a key that signatures are checked with: a public key
// (SubjectPublicKeyInfo) or a certificate in PEM, a public key in DER, or the
// private key. Certificates behind the first, which are its issuers', say
// nothing of the key and are not read.
func ParseVerifier(data []byte, largestRSA int) (crypto.PublicKey, []*x509.Certificate, error) {
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
	block, rest := pem.Decode(data)
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
	case nil: // what crypto/x509 makes of an algorithm in a certificate that it does not know
		return nil, errors.New("has a certificate for a key of an algorithm that is not known, expected RSA, ECDSA or Ed25519")
	default:
		return nil, fmt.Errorf("has a public key of a kind that does not verify (%T), expected RSA, ECDSA, Ed25519 or ML-DSA", public)
	}
}

// maxChain is the longest chain of certificates.
const maxChain = 10

// ParseCertificates reads a chain of certificates in PEM: the first is that of
// the key, each other one has issued the one before it. None has an RSA key of
// more than largestRSA bits.
func ParseCertificates(data []byte, largestRSA int) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for rest := data; ; {
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
		// The next line may check a signature with it.
		if err := CheckRSASize(certificate.PublicKey, largestRSA); err != nil {
			return nil, fmt.Errorf("has a certificate, number %d, whose key %w", len(chain)+1, err)
		}
		if i := len(chain); i > 0 {
			if err := chain[i-1].CheckSignatureFrom(certificate); err != nil {
				return nil, fmt.Errorf("has certificates out of order: number %d did not issue number %d (%w); expected that of the key first and each followed by its issuer", i+1, i, err)
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

// isDER reports whether the data begins as every key in DER does, with a sequence.
func isDER(data []byte) bool { return bytes.HasPrefix(data, []byte{0x30}) }

// Forget overwrites a private key that came with a request, once it was used: an
// Ed25519 key is a slice. Keys of other algorithms are numbers and tables inside
// Go's packages, which nobody can overwrite.
func Forget(signer crypto.Signer) {
	if key, ok := signer.(ed25519.PrivateKey); ok {
		clear(key)
	}
}
