// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // digests of signatures
	_ "crypto/sha3"   // digests of signatures
	_ "crypto/sha512" // digests of signatures
	"crypto/x509"
	"errors"
	"fmt"

	"filippo.io/mldsa"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// SigningKey is a key that signs.
type SigningKey struct {
	Signer crypto.Signer
	// Certificates are the certificate of the key and then the certificates of its issuers.
	// Only CMS needs them.
	Certificates []*x509.Certificate
}

// VerifyingKey is a key that verifies signatures.
type VerifyingKey struct {
	Public crypto.PublicKey
	// Certificates are the certificates as in [SigningKey].
	Certificates []*x509.Certificate
}

// Sign signs the input by the rules of a profile. There has to be one key for each component
// of the policy, in the same order.
//
// With RSASSA-PSS, the salt has the length of the digest, and MGF1 uses the same digest.
// ML-DSA is hedged (FIPS 204, section 3.4) and has an empty context string.
func Sign(policy *profile.SignaturePolicy, format profile.SignatureFormat, keys []SigningKey, input []byte) ([]byte, error) {
	components := policy.Components()
	if err := checkFormat(policy, format); err != nil {
		return nil, err
	}
	if err := checkKeyCount(policy, len(keys)); err != nil {
		return nil, err
	}
	for i, key := range keys {
		field := keyField(len(keys), i)
		if err := checkKey(components[i], key.Signer.Public(), policy.Signs(), field); err != nil {
			return nil, err
		}
		if policy.RequiresFIPS() {
			if problem := UnapprovedKey(key.Signer.Public(), key.Signer); problem != "" {
				return nil, inputError(field, "is %s", problem)
			}
		}
	}
	if format == profile.SignatureCMS {
		return signCMS(components[0], keys[0], input)
	}
	signatures := make([][]byte, len(keys))
	for i, key := range keys {
		signature, err := signComponent(components[i], key.Signer, input)
		if err != nil {
			return nil, err
		}
		signatures[i] = signature
	}
	return encodeSignatures(components, format, keys, signatures)
}

// Verify reports whether a signature of the input is valid by the rules of a profile. There
// has to be one key for each component of the policy, in the same order. A hybrid signature
// is valid if all its signatures are.
//
// A signature with an invalid format or length is an error, so that callers can tell a
// mistake from a forgery.
func Verify(policy *profile.SignaturePolicy, format profile.SignatureFormat, keys []VerifyingKey, input, signature []byte) (bool, error) {
	components := policy.Components()
	if err := checkFormat(policy, format); err != nil {
		return false, err
	}
	if err := checkKeyCount(policy, len(keys)); err != nil {
		return false, err
	}
	for i, key := range keys {
		field := keyField(len(keys), i)
		if err := checkKey(components[i], key.Public, policy.Checks(), field); err != nil {
			return false, err
		}
		if policy.RequiresFIPS() {
			if problem := UnapprovedKey(key.Public, nil); problem != "" {
				return false, inputError(field, "is %s", problem)
			}
		}
	}
	if format == profile.SignatureCMS {
		return verifyCMS(components[0], keys[0], input, signature)
	}
	signatures, err := decodeSignatures(components, format, keys, signature)
	if err != nil {
		return false, err
	}
	valid := true
	for i, key := range keys {
		if !verifyComponent(components[i], key.Public, input, signatures[i]) {
			valid = false
		}
	}
	return valid, nil
}

// signComponent returns a signature in its standard form. That is DER for ECDSA, and the
// octets of the algorithm otherwise.
func signComponent(c profile.SignatureComponent, signer crypto.Signer, input []byte) ([]byte, error) {
	signature, err := signRaw(c, signer, input)
	if errors.Is(err, rsa.ErrMessageTooLong) {
		return nil, inputError("keySource", "is an RSA key too small for %s with %s", c.Algorithm, c.Hash)
	}
	return signature, err
}

// signRaw signs. A key manager that takes messages gets the input, and else its digest.
func signRaw(c profile.SignatureComponent, signer crypto.Signer, input []byte) ([]byte, error) {
	options := c.Algorithm.SignerOptions(c.Hash)
	if remote, ok := signer.(crypto.MessageSigner); ok {
		return remote.SignMessage(rand.Reader, input, options)
	}
	return signer.Sign(rand.Reader, toSign(c, input), options)
}

// verifyComponent reports whether a signature is valid. The signature has the form that
// signComponent returns.
func verifyComponent(c profile.SignatureComponent, public crypto.PublicKey, input, signature []byte) bool {
	return c.Algorithm.Verify(public, c.Hash, toSign(c, input), signature)
}

// toSign returns what the algorithm signs: a digest of the input, or the input itself.
func toSign(c profile.SignatureComponent, input []byte) []byte {
	if c.Hash == 0 {
		return input
	}
	return digestOf(c.Hash, input)
}

func digestOf(hash crypto.Hash, input []byte) []byte {
	h := hash.New()
	h.Write(input)
	return h.Sum(nil)
}

// keyField returns the path of the key with the index i in a request with this many keys.
func keyField(keys, i int) string {
	if keys == 1 {
		return "keySource.single"
	}
	return fmt.Sprintf("keySource.componentKeys.keys[%d]", i)
}

func checkKeyCount(policy *profile.SignaturePolicy, found int) error {
	want := len(policy.Components())
	switch {
	case found == want:
		return nil
	case want == 1:
		return inputError("keySource", "has %d component keys, expected a single key for %s", found, policy.Algorithm())
	default:
		return inputError("keySource", "has %d key, expected %d in componentKeys for %s, the classical one first", found, want, policy.Algorithm())
	}
}

// checkKey refuses a key whose algorithm does not fit, or whose size is not allowed.
func checkKey(c profile.SignatureComponent, public crypto.PublicKey, limits keyrules.Limits, field string) error {
	found, bits := describeKey(public)
	want := c.Algorithm.Key().Name
	if found != want {
		return inputError(field, "is %s key, expected %s key for %s", article(found), article(want), c.Algorithm)
	}
	if bits == 0 {
		return nil // the algorithm has one key size
	}
	size, ok := limits.Range(found)
	if !ok {
		return inputError(field, "is %s key, which the profile's KeyConstraints do not list", article(found))
	}
	if !limits.Allow(found, bits) {
		return inputError(field, "is %s key of %d bits, expected %d to %d bits", article(found), bits, size.MinKeySize, size.MaxKeySize)
	}
	return nil
}

// UsedKey returns the kind of a key. id is the id of the broker's key, empty for a key of a
// request.
func UsedKey(public crypto.PublicKey, id string) profile.UsedKey {
	algorithm, bits := describeKey(public)
	return profile.UsedKey{Algorithm: algorithm, Bits: bits, ID: id}
}

// describeKey returns the algorithm of a key and its size in bits. The size is 0 if the
// algorithm is ML-DSA, whose name has the size, or not supported.
func describeKey(public crypto.PublicKey) (algorithm string, bits int) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return "RSA", key.N.BitLen()
	case *ecdsa.PublicKey:
		return "ECDSA", key.Params().BitSize
	case ed25519.PublicKey:
		return "Ed25519", 8 * len(key)
	case *mldsa.PublicKey:
		return key.Parameters().String(), 0
	default:
		return fmt.Sprintf("%T", public), 0
	}
}

func article(algorithm string) string {
	switch algorithm[0] {
	case 'E', 'R', 'M': // names that take "an": an RSA key, an ECDSA key, an ML-DSA key
		return "an " + algorithm
	default:
		return "a " + algorithm
	}
}
