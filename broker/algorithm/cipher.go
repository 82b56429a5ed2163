// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"
)

// Cipher is an algorithm that encrypts and authenticates. The zero value is none.
type Cipher uint8

// AESGCM is AES-GCM of NIST SP 800-38D.
const AESGCM Cipher = iota + 1

// cipherRow is what is known of a cipher. Sizes are in bits.
type cipherRow struct {
	name string
	// primitive is what messages call its keys by, with their size: "AES-128".
	primitive string
	approval  Approval
	since     Format
	// keys are the sizes of keys, each of which has as many bits of strength (table 2).
	keys []int
	// tags are the sizes of tags, the whole one last. SP 800-38D allows these without
	// reserve.
	tags []int
}

var ciphers = [...]cipherRow{
	AESGCM: {"aes-gcm", "AES", Approved, Format0, []int{128, 192, 256}, []int{96, 104, 112, 120, 128}},
}

// Ciphers returns the names of all ciphers.
func Ciphers() []string {
	var names []string
	for _, row := range ciphers[1:] {
		names = append(names, row.name)
	}
	return names
}

// FindCipher finds a cipher by its name, in any case.
func FindCipher(name string) (Cipher, bool) {
	for i, row := range ciphers {
		if row.name != "" && strings.EqualFold(row.name, name) {
			return Cipher(i), true
		}
	}
	return 0, false
}

// String returns the name that profiles and replies have, in lower case.
func (c Cipher) String() string { return ciphers[c].name }

// Approval is the verdict of FIPS 140-3, where nonces are random.
func (c Cipher) Approval() Approval { return ciphers[c].approval }

// KeySizes are those of keys, in bits. The caller must not change them.
func (c Cipher) KeySizes() []int { return ciphers[c].keys }

// TagSizes are those of tags in bits, the whole one last. The caller must not
// change them.
func (c Cipher) TagSizes() []int { return ciphers[c].tags }

// WholeTag is the size of a tag that is not cut, in bits.
func (c Cipher) WholeTag() int { return ciphers[c].tags[len(ciphers[c].tags)-1] }

// Strength is that of a key of so many bits, and the words for what limits it.
func (c Cipher) Strength(keySize int) (bits int, limit string) {
	return keySize, fmt.Sprintf("%s-%d", ciphers[c].primitive, keySize)
}

// CipherFormat is the version of the profile format that a cipher came with, by
// its name; Format0 without a name.
func CipherFormat(name string) Format {
	if name == "" {
		return Format0
	}
	if c, known := FindCipher(name); known {
		return ciphers[c].since
	}
	return newest
}
