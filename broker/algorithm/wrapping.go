// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"crypto"
	"fmt"
)

// Wrapping is an algorithm that wraps keys. Its number is in wrapped keys, so it never changes
// and is never used for another algorithm. The zero value is not an algorithm.
type Wrapping uint8

// The algorithms that wrap keys: AES key wrap with and without padding (RFC 3394, RFC 5649),
// AES-GCM with random nonces (NIST SP 800-38D), RSA-OAEP (RFC 8017) with a digest that is also
// the digest of its mask, and HPKE (RFC 9180) in base mode with AES-256-GCM. The key
// encapsulations with ML-KEM are from draft-ietf-hpke-pq.
const (
	WrapAESKW           Wrapping = 1
	WrapAESKWP          Wrapping = 2
	WrapAESGCM          Wrapping = 3
	WrapRSAOAEPSHA1     Wrapping = 4
	WrapRSAOAEPSHA256   Wrapping = 5
	WrapRSAOAEPSHA384   Wrapping = 6
	WrapRSAOAEPSHA512   Wrapping = 7
	WrapHPKEP256        Wrapping = 8
	WrapHPKEP384        Wrapping = 9
	WrapHPKEP521        Wrapping = 10
	WrapHPKEMLKEM768    Wrapping = 11
	WrapHPKEMLKEM1024   Wrapping = 12
	WrapHPKEMLKEMX25519 Wrapping = 13
)

// WrappingKey is a kind of keys that wrap other keys. Its text is its name in messages.
type WrappingKey string

// The kinds of keys that wrap other keys.
const (
	AESWrappingKey         WrappingKey = "AES"
	RSAWrappingKey         WrappingKey = "RSA"
	P256WrappingKey        WrappingKey = "ECDH P-256"
	P384WrappingKey        WrappingKey = "ECDH P-384"
	P521WrappingKey        WrappingKey = "ECDH P-521"
	MLKEM768WrappingKey    WrappingKey = "ML-KEM-768"
	MLKEM1024WrappingKey   WrappingKey = "ML-KEM-1024"
	MLKEMX25519WrappingKey WrappingKey = "MLKEM768-X25519"
)

// wrappingRow is the row of an algorithm that wraps keys.
type wrappingRow struct {
	name     string
	key      WrappingKey
	approval Approval
	since    Format
	contexts contexts
	// sizes are the sizes of wrapping keys in bits, the smallest first, or FixedSize alone.
	// An RSA key may be larger than the size here.
	sizes []int
	// strength returns the strength in bits of a wrapping key of a size in bits.
	strength func(size int) int
	// hash is the digest of RSA-OAEP, 0 for other algorithms.
	hash crypto.Hash
}

func (r wrappingRow) entry() (string, Format) { return r.name, r.since }

// contexts says whether an algorithm authenticates additional data with the wrapped key. The
// zero value is not an answer and counts as no.
type contexts uint8

const (
	withContext contexts = iota + 1
	withoutContext
)

var (
	aesSizes = []int{128, 192, 256}
	// rsaSizes has the smallest size with a strength of 112 bits.
	rsaSizes   = []int{2048}
	fixedSizes = []int{FixedSize}
)

// The strengths of AES are its sizes (table 2). The strengths of ML-KEM are from FIPS 203,
// section 8: categories 3 and 5. MLKEM768-X25519 is also known as X-Wing, whose authors claim
// 128 bits.
var wrappings = [...]wrappingRow{
	// NIST SP 800-38F approves KW and KWP, but module v1.0.0 does not have them.
	WrapAESKW:  {"aes-kw", AESWrappingKey, NotInModule, Format1, withoutContext, aesSizes, sizeIsStrength, 0},
	WrapAESKWP: {"aes-kwp", AESWrappingKey, NotInModule, Format1, withoutContext, aesSizes, sizeIsStrength, 0},
	// NIST SP 800-38F, section 3.1, approves AES-GCM for keys.
	WrapAESGCM: {"aes-gcm", AESWrappingKey, Approved, Format1, withContext, aesSizes, sizeIsStrength, 0},
	// NIST SP 800-56B Rev. 2 approves RSA-OAEP.
	WrapRSAOAEPSHA1:   {"rsa-oaep-sha-1", RSAWrappingKey, NotApproved, Format1, withContext, rsaSizes, keyStrength(RSAKey), crypto.SHA1},
	WrapRSAOAEPSHA256: {"rsa-oaep-sha-256", RSAWrappingKey, Approved, Format1, withContext, rsaSizes, keyStrength(RSAKey), crypto.SHA256},
	WrapRSAOAEPSHA384: {"rsa-oaep-sha-384", RSAWrappingKey, Approved, Format1, withContext, rsaSizes, keyStrength(RSAKey), crypto.SHA384},
	WrapRSAOAEPSHA512: {"rsa-oaep-sha-512", RSAWrappingKey, Approved, Format1, withContext, rsaSizes, keyStrength(RSAKey), crypto.SHA512},
	// The nonces of HPKE come from its key schedule. Module v1.0.0 does not have that, and
	// does not count AES-GCM with a given nonce as an approved service. A hybrid with ML-KEM
	// is as approved as ML-KEM (NIST SP 800-56C Rev. 2, section 2).
	WrapHPKEP256:        {"hpke-p-256", P256WrappingKey, NotInModule, Format1, withContext, fixedSizes, fixedStrength(128), 0},
	WrapHPKEP384:        {"hpke-p-384", P384WrappingKey, NotInModule, Format1, withContext, fixedSizes, fixedStrength(192), 0},
	WrapHPKEP521:        {"hpke-p-521", P521WrappingKey, NotInModule, Format1, withContext, fixedSizes, fixedStrength(256), 0},
	WrapHPKEMLKEM768:    {"hpke-ml-kem-768", MLKEM768WrappingKey, NotInModule, Format1, withContext, fixedSizes, fixedStrength(192), 0},
	WrapHPKEMLKEM1024:   {"hpke-ml-kem-1024", MLKEM1024WrappingKey, NotInModule, Format1, withContext, fixedSizes, fixedStrength(256), 0},
	WrapHPKEMLKEMX25519: {"hpke-mlkem768-x25519", MLKEMX25519WrappingKey, NotInModule, Format1, withContext, fixedSizes, fixedStrength(128), 0},
}

func sizeIsStrength(size int) int { return size }

func fixedStrength(bits int) func(int) int { return func(int) int { return bits } }

// Wrappings returns the names of all algorithms that wrap keys.
func Wrappings() []string { return namesOf(wrappings[:]) }

// FindWrapping returns the wrapping algorithm with this name. Upper and lower case do not matter.
func FindWrapping(name string) (Wrapping, bool) { return find[Wrapping](wrappings[:], name) }

// IsKnown reports whether there is a wrapping algorithm with this number. The other methods
// need such a number.
func (w Wrapping) IsKnown() bool { return w > 0 && int(w) < len(wrappings) }

// String returns the name that profiles and replies have, in lower case.
func (w Wrapping) String() string {
	if !w.IsKnown() {
		return fmt.Sprintf("wrapping algorithm %d", uint8(w))
	}
	return wrappings[w].name
}

// Key returns the kind of the wrapping key.
func (w Wrapping) Key() WrappingKey { return wrappings[w].key }

// Approval returns the verdict of FIPS 140-3 on wrapping with the algorithm.
func (w Wrapping) Approval() Approval { return wrappings[w].approval }

// BindsContext reports whether the algorithm authenticates additional data with the wrapped
// key.
func (w Wrapping) BindsContext() bool { return wrappings[w].contexts == withContext }

// KeySizes returns the sizes of wrapping keys in bits, the smallest first. It is FixedSize alone
// if the kind of the key has one size. An RSA key may be larger. The caller must not change
// them.
func (w Wrapping) KeySizes() []int { return wrappings[w].sizes }

// Strength returns the strength in bits of a wrapping key of keySize bits, or of FixedSize. limit
// describes the key, for messages.
func (w Wrapping) Strength(keySize int) (bits int, limit string) {
	row := wrappings[w]
	switch row.key {
	case AESWrappingKey:
		limit = fmt.Sprintf("AES-%d", keySize)
	case RSAWrappingKey:
		limit = fmt.Sprintf("RSA keys of %d bits", keySize)
	default:
		limit = string(row.key)
	}
	return row.strength(keySize), limit
}

// OAEPHash returns the digest of RSA-OAEP, and 0 for other algorithms.
func (w Wrapping) OAEPHash() crypto.Hash { return wrappings[w].hash }

// WrappingFormat returns the first version of the profile format that has the wrapping
// algorithm with this name. It is Format0 for an empty name, and the newest version for an
// unknown name.
func WrappingFormat(name string) Format { return formatOf(wrappings[:], name) }
