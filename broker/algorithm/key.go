// SPDX-License-Identifier: Apache-2.0

package algorithm

import "fmt"

// Key is an algorithm of keys. Sizes are in bits.
type Key struct {
	// Name is what profiles and messages call it, such as "RSA".
	Name string
	// MinSize and MaxSize are the bounds of what a profile may allow. Both are
	// FixedSize where the name says the size, and profiles do not list the algorithm.
	MinSize, MaxSize int
	// DefaultMinSize is the smallest size with 112 bits of strength, which NIST SP
	// 800-131A Rev. 2 demands of every signature.
	DefaultMinSize int
	// MinApprovedSize is the smallest size that FIPS 186-5 approves.
	MinApprovedSize int
	Approval        Approval
	Since           Format
	// strengths are those of table 2, the strongest first.
	strengths []sizeStrength
}

// sizeStrength is the strength of keys of a size or above, both in bits.
type sizeStrength struct{ size, strength int }

const (
	// FixedSize stands for the size of keys that have one size only.
	FixedSize = -1
	// AnySize as MinApprovedSize: each size that a profile may allow is approved.
	AnySize = -1
)

// Sizes of keys in bits.
const (
	// MaxRSASize is the largest RSA key that a profile can allow.
	MaxRSASize = 16384
	// MaxGivenRSASize is the size of the largest RSA key that a request may bring
	// unless the profile allows larger ones: the time that a key takes grows with the
	// cube of its size.
	MaxGivenRSASize = 4096
)

// The names of keys that a profile can list.
const (
	RSAKey     = "RSA"
	ECDSAKey   = "ECDSA"
	Ed25519Key = "Ed25519"
)

// keys are all algorithms of keys. The lower bound of RSA is what Go's crypto/rsa
// still accepts, the upper bound of ECDSA is P-521.
var keys = [...]Key{
	{RSAKey, 1024, MaxRSASize, 2048, 2048, Approved, Format0, []sizeStrength{{15360, 256}, {7680, 192}, {3072, 128}, {2048, 112}, {1024, 80}}},
	{ECDSAKey, 224, 521, 224, AnySize, Approved, Format0, []sizeStrength{{512, 256}, {384, 192}, {256, 128}, {224, 112}, {160, 80}}},
	// NIST SP 800-186, section 3.2.3.
	{Ed25519Key, 256, 256, 256, AnySize, Approved, Format1, []sizeStrength{{256, 128}}},
	// FIPS 204, table 1: categories 2, 3 and 5 are at least as hard to break as
	// collisions of SHA-256, AES-192 and AES-256.
	{"ML-DSA-44", FixedSize, FixedSize, FixedSize, AnySize, NotInModule, Format1, []sizeStrength{{FixedSize, 128}}},
	{"ML-DSA-65", FixedSize, FixedSize, FixedSize, AnySize, NotInModule, Format1, []sizeStrength{{FixedSize, 192}}},
	{"ML-DSA-87", FixedSize, FixedSize, FixedSize, AnySize, NotInModule, Format1, []sizeStrength{{FixedSize, 256}}},
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

// ListedKeyNames returns the names of ListedKeys.
func ListedKeyNames() []string {
	var names []string
	for _, key := range ListedKeys() {
		names = append(names, key.Name)
	}
	return names
}

// FindKey finds an algorithm of keys by its exact name.
func FindKey(name string) (Key, bool) {
	for _, key := range keys {
		if key.Name == name {
			return key, true
		}
	}
	return Key{}, false
}

// IsListed reports whether a profile can list the algorithm in KeyConstraints,
// with sizes. The others have one size only.
func (k Key) IsListed() bool { return k.MinSize != FixedSize }

// Strength is that of keys of so many bits or more, and the words for what limits
// it. Keys below all sizes of the table have 0 bits.
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

// KeyFormat is the version of the profile format that an algorithm of keys came
// with, by its exact name.
func KeyFormat(name string) Format {
	if key, known := FindKey(name); known {
		return key.Since
	}
	return newest
}
