// SPDX-License-Identifier: Apache-2.0

package algorithm

import "fmt"

// Key is an algorithm of keys. Sizes are in bits.
type Key struct {
	// Name is the name in profiles and messages, such as "RSA".
	Name string
	// MinSize and MaxSize are the smallest and the largest size that a profile may allow.
	// Both are FixedSize if the name has the size. Profiles do not list such algorithms.
	MinSize, MaxSize int
	// DefaultMinSize is the smallest size with a strength of 112 bits, which NIST SP
	// 800-131A Rev. 2 demands of every signature.
	DefaultMinSize int
	// MinApprovedSize is the smallest size that FIPS 186-5 approves, or AnySize.
	MinApprovedSize int
	Approval        Approval
	// Since is the first version of the profile format that has the algorithm.
	Since Format
	// strengths are the strengths of sizes (table 2), the strongest first.
	strengths []sizeStrength
	// family is the family of the keys in the table of primitives.
	family string
}

// sizeStrength is the strength of keys of at least a size, both in bits.
type sizeStrength struct{ size, strength int }

const (
	// FixedSize is the size of keys of an algorithm that has one size only.
	FixedSize = -1
	// AnySize is the MinApprovedSize of an algorithm whose sizes are all approved.
	AnySize = -1
)

// Sizes of keys in bits.
const (
	// MaxRSASize is the largest RSA key that a profile can allow.
	MaxRSASize = 16384
	// MaxGivenRSASize is the size of the largest RSA key that a request may bring, unless
	// the profile allows larger ones. The time for a signature grows with the cube of the
	// size.
	MaxGivenRSASize = 4096
)

// The names of the key algorithms that a profile can list.
const (
	RSAKey     = "RSA"
	ECDSAKey   = "ECDSA"
	Ed25519Key = "Ed25519"
)

// keys are all algorithms of keys. The lower bound of RSA is the smallest size that Go's
// crypto/rsa accepts. The upper bound of ECDSA is the size of P-521.
var keys = [...]Key{
	{RSAKey, 1024, MaxRSASize, 2048, 2048, Approved, Format0, []sizeStrength{{15360, 256}, {7680, 192}, {3072, 128}, {2048, 112}, {1024, 80}}, rsaFamily},
	{ECDSAKey, 224, 521, 224, AnySize, Approved, Format0, []sizeStrength{{512, 256}, {384, 192}, {256, 128}, {224, 112}, {160, 80}}, curveFamily},
	// The strength of Ed25519 is in NIST SP 800-186, section 3.2.3.
	{Ed25519Key, 256, 256, 256, AnySize, Approved, Format1, []sizeStrength{{256, 128}}, "ed25519"},
	// FIPS 204, table 1: categories 2, 3 and 5 are at least as hard to break as
	// collisions of SHA-256, AES-192 and AES-256.
	{"ML-DSA-44", FixedSize, FixedSize, FixedSize, AnySize, NotInModule, Format1, []sizeStrength{{FixedSize, 128}}, "ml-dsa-44"},
	{"ML-DSA-65", FixedSize, FixedSize, FixedSize, AnySize, NotInModule, Format1, []sizeStrength{{FixedSize, 192}}, "ml-dsa-65"},
	{"ML-DSA-87", FixedSize, FixedSize, FixedSize, AnySize, NotInModule, Format1, []sizeStrength{{FixedSize, 256}}, "ml-dsa-87"},
}

// ListedKeys returns the algorithms that a profile can list in KeyConstraints.
func ListedKeys() []Key {
	var listed []Key
	for _, key := range keys {
		if key.IsListed() {
			listed = append(listed, key)
		}
	}
	return listed
}

// ListedKeyNames returns the names of [ListedKeys].
func ListedKeyNames() []string {
	var names []string
	for _, key := range ListedKeys() {
		names = append(names, key.Name)
	}
	return names
}

// FindKey returns the algorithm of keys with this exact name.
func FindKey(name string) (Key, bool) {
	for _, key := range keys {
		if key.Name == name {
			return key, true
		}
	}
	return Key{}, false
}

// IsListed reports whether a profile can list the algorithm with sizes in KeyConstraints.
func (k Key) IsListed() bool { return k.MinSize != FixedSize }

// Strength returns the strength in bits of keys of at least size bits. It is 0 for a size below
// all sizes of the table. limit describes the keys, for messages.
func (k Key) Strength(size int) (bits int, limit string) {
	for _, row := range k.strengths {
		if size >= row.size {
			if k.MinSize == k.MaxSize {
				return row.strength, k.Name
			}
			return row.strength, fmt.Sprintf("%s keys of %d bits", k.Name, size)
		}
	}
	return 0, k.Name + " keys, none of which is allowed"
}

// KeyFormat returns the first version of the profile format that has the algorithm of keys
// with this exact name. It is the newest version for an unknown name.
func KeyFormat(name string) Format {
	if key, known := FindKey(name); known {
		return key.Since
	}
	return newest
}
