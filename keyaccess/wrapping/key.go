// SPDX-License-Identifier: Apache-2.0

package wrapping

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of OpenTDF's clients; OAEP does not need a hash that resists collisions
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// Type says how a data key is wrapped, by the name that OpenTDF's clients use.
type Type string

// The types that the service unwraps.
const (
	RSA   Type = "wrapped"
	EC    Type = "ec-wrapped"
	MLKEM Type = "mlkem-wrapped"
	// Hybrid is a key encapsulation that a quantum computer and an error in ML-KEM would have to break together.
	Hybrid Type = "hybrid-wrapped"
)

// Types are all types.
var Types = []Type{RSA, EC, MLKEM, Hybrid}

// Approved reports whether FIPS 140-3 approves the cryptography of a type: RSA is with SHA-1, and Hybrid has X25519.
func (t Type) Approved() bool { return t != RSA && t != Hybrid }

// Algorithm is an algorithm of key pairs, by the name that OpenTDF's clients use.
type Algorithm string

// The algorithms of key pairs.
const (
	RSA2048   Algorithm = "rsa:2048"
	RSA3072   Algorithm = "rsa:3072"
	RSA4096   Algorithm = "rsa:4096"
	P256      Algorithm = "ec:secp256r1"
	P384      Algorithm = "ec:secp384r1"
	P521      Algorithm = "ec:secp521r1"
	MLKEM768  Algorithm = "mlkem:768"
	MLKEM1024 Algorithm = "mlkem:1024"
	XWing     Algorithm = "hpqt:xwing"
)

// Algorithms are all algorithms. The first one is the algorithm that most clients support.
var Algorithms = []Algorithm{RSA2048, RSA3072, RSA4096, P256, P384, P521, MLKEM768, MLKEM1024, XWing}

// Type returns how data keys are wrapped with a key pair of the algorithm, or the empty string
// for an algorithm that the package does not have.
func (a Algorithm) Type() Type {
	switch i := slices.Index(Algorithms, a); {
	case i < 0:
		return ""
	case i < slices.Index(Algorithms, P256):
		return RSA
	case i < slices.Index(Algorithms, MLKEM768):
		return EC
	case a == XWing:
		return Hybrid
	default:
		return MLKEM
	}
}

// Wrapped is a wrapped data key, as a client sent it.
type Wrapped struct {
	Type Type
	Key  []byte
	// Ephemeral is the client's ephemeral public key in PEM, for EC only.
	Ephemeral string
}

// ephemeral parses the client's ephemeral public key.
func (w *Wrapped) ephemeral() (*ecdh.PublicKey, error) {
	public, err := parsePublic(w.Ephemeral)
	if err != nil {
		return nil, err
	}
	return exchangeKey(public)
}

// A Key is a private key that unwraps data keys. The private key may be in a key manager.
type Key interface {
	// Algorithm returns the algorithm of the key pair.
	Algorithm() Algorithm
	// Public returns the public key in PEM (SubjectPublicKeyInfo, RFC 5280).
	Public() string
	// Unwrap returns the data key, which the caller clears. Unwrap refuses a Wrapped of a type other than the type of the algorithm.
	Unwrap(ctx context.Context, wrapped Wrapped) ([]byte, error)
}

// pair has the public half of a key pair, and implements the first two methods of Key.
type pair struct {
	algorithm Algorithm
	public    string
}

// Algorithm implements Key.
func (p pair) Algorithm() Algorithm { return p.algorithm }

// Public implements Key.
func (p pair) Public() string { return p.public }

// largestRSA is the size of the largest RSA key in bits.
const largestRSA = 4096

// ParseKey reads a private key in PEM that is not encrypted: RSA of 2048, 3072 or 4096 bits,
// ECDSA on P-256, P-384 or P-521, ML-KEM-768 or ML-KEM-1024 with its seed, or X-Wing. The caller
// clears the text. An error is the end of a sentence that begins with the name of what was parsed.
func ParseKey(text []byte) (Key, error) {
	if key, err := parseKEMKey(text); key != nil || err != nil {
		return key, err
	}
	signer, err := keys.ParsePrivateKey(text, largestRSA)
	if err != nil {
		return nil, err
	}
	return localKey(signer)
}

// localKey returns the key of a private key in memory. An error is the end of a sentence that begins with the name of the key.
func localKey(signer crypto.Signer) (Key, error) {
	switch key := signer.(type) {
	case *rsa.PrivateKey:
		algorithm, err := rsaAlgorithm(&key.PublicKey)
		if err != nil {
			return nil, err
		}
		public, err := publicPEM(&key.PublicKey)
		return &rsaKey{pair{algorithm, public}, key}, err
	case *ecdsa.PrivateKey:
		exchange, err := key.ECDH()
		if err != nil {
			return nil, errCurve
		}
		public, err := publicPEM(&key.PublicKey)
		return &ecKey{pair{curveAlgorithm(exchange.Curve()), public}, exchange}, err
	default:
		return nil, errors.New("is a key for signatures only, expected RSA, ECDSA, ML-KEM or X-Wing")
	}
}

// parsePublic reads a public key in PEM: SubjectPublicKeyInfo, or the certificate of the key. An
// error is the end of a sentence that begins with the name of what was parsed.
func parsePublic(text string) (any, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("has no complete PEM block, expected a public key in PEM")
	}
	if block.Type == "CERTIFICATE" {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("is a damaged certificate, expected a public key in PEM")
		}
		return certificate.PublicKey, nil
	}
	if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return key, nil
	}
	if key := parseKEMPublic(block.Bytes); key != nil {
		return key, nil
	}
	return nil, errors.New("is damaged or of an unknown algorithm, expected RSA, EC, ML-KEM or X-Wing")
}

func publicPEM(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	return encodePublic(der), nil
}

func encodePublic(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// rsaKey unwraps with RSA-OAEP.
type rsaKey struct {
	pair
	key *rsa.PrivateKey
}

var errType = errors.New("the data key is wrapped in another way than this key unwraps")

// Unwrap implements Key.
func (k *rsaKey) Unwrap(_ context.Context, wrapped Wrapped) ([]byte, error) {
	if wrapped.Type != RSA {
		return nil, errType
	}
	// RFC 8017, section 7.1.2, step 1b. Go's package also takes a shorter ciphertext.
	if len(wrapped.Key) != k.key.Size() {
		return nil, keys.ErrInvalidCiphertext
	}
	return rsa.DecryptOAEP(sha1.New(), nil, k.key, wrapped.Key, nil)
}

// ecKey unwraps with a key of ECDH, HKDF and AES-256-GCM.
type ecKey struct {
	pair
	key *ecdh.PrivateKey
}

// Unwrap implements Key.
func (k *ecKey) Unwrap(_ context.Context, wrapped Wrapped) ([]byte, error) {
	if wrapped.Type != EC {
		return nil, errType
	}
	ephemeral, err := wrapped.ephemeral()
	if err != nil {
		return nil, err
	}
	secret, err := k.key.ECDH(ephemeral)
	if err != nil {
		return nil, err
	}
	return openShared(secret, wrapped.Key)
}

// openShared decrypts what is encrypted under a shared secret of ECDH or X-Wing, which it overwrites.
func openShared(secret, sealed []byte) ([]byte, error) {
	key, err := derive(secret)
	clear(secret)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return open(key, sealed)
}

// sealShared encrypts a data key for [openShared], and overwrites the shared secret.
func sealShared(secret, dataKey []byte) ([]byte, error) {
	key, err := derive(secret)
	clear(secret)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return seal(key, dataKey)
}

// rsaAlgorithm returns the algorithm of an RSA key.
func rsaAlgorithm(key *rsa.PublicKey) (Algorithm, error) {
	algorithm := Algorithm(fmt.Sprintf("rsa:%d", key.N.BitLen()))
	if algorithm.Type() != RSA {
		return "", fmt.Errorf("is an RSA key of %d bits, expected 2048, 3072 or 4096", key.N.BitLen())
	}
	return algorithm, nil
}

var errCurve = errors.New("is an EC key on another curve, expected P-256, P-384 or P-521")

// curveAlgorithm returns the algorithm of keys on a curve, or the empty string.
func curveAlgorithm(curve ecdh.Curve) Algorithm {
	switch curve {
	case ecdh.P256():
		return P256
	case ecdh.P384():
		return P384
	case ecdh.P521():
		return P521
	default:
		return ""
	}
}

// exchangeKey returns an EC public key for ECDH.
func exchangeKey(public any) (*ecdh.PublicKey, error) {
	if key, ok := public.(*ecdsa.PublicKey); ok {
		if exchange, err := key.ECDH(); err == nil && curveAlgorithm(exchange.Curve()) != "" {
			return exchange, nil
		}
	}
	return nil, errors.New("expected an EC key on P-256, P-384 or P-521")
}
