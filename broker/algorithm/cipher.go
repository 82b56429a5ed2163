// SPDX-License-Identifier: Apache-2.0

package algorithm

import "fmt"

// Cipher is an algorithm that encrypts and authenticates. The zero value is not a cipher.
type Cipher uint8

// AESGCM is AES-GCM of NIST SP 800-38D.
const AESGCM Cipher = iota + 1

// cipherRow is the row of a cipher in the registry. Sizes are in bits.
type cipherRow struct {
	name string
	// primitive is the name of its keys in messages without their size: "AES" in "AES-128".
	primitive string
	approval  Approval
	since     Format
	// keys are the sizes of keys. The strength of a key is its size (table 2).
	keys []int
	// tags are the sizes of tags, the full size last. NIST SP 800-38D allows all of them
	// for any use.
	tags []int
}

func (r cipherRow) entry() (string, Format) { return r.name, r.since }

var ciphers = [...]cipherRow{
	AESGCM: {"aes-gcm", "AES", Approved, Format0, []int{128, 192, 256}, []int{96, 104, 112, 120, 128}},
}

// Ciphers returns the names of all ciphers.
func Ciphers() []string { return namesOf(ciphers[:]) }

// FindCipher returns the cipher with this name. Upper and lower case do not matter.
func FindCipher(name string) (Cipher, bool) { return find[Cipher](ciphers[:], name) }

// String returns the name that profiles and replies have, in lower case.
func (c Cipher) String() string { return ciphers[c].name }

// Approval returns the verdict of FIPS 140-3 on the cipher with random nonces.
func (c Cipher) Approval() Approval { return ciphers[c].approval }

// KeySizes returns the sizes of keys in bits. The caller must not change them.
func (c Cipher) KeySizes() []int { return ciphers[c].keys }

// TagSizes returns the sizes of tags in bits, the full size last. The caller must not change
// them.
func (c Cipher) TagSizes() []int { return ciphers[c].tags }

// WholeTag returns the full size of a tag in bits.
func (c Cipher) WholeTag() int { return ciphers[c].tags[len(ciphers[c].tags)-1] }

// Strength returns the strength in bits of a key of keySize bits. limit describes the key, for
// messages.
func (c Cipher) Strength(keySize int) (bits int, limit string) {
	return keySize, fmt.Sprintf("%s-%d", ciphers[c].primitive, keySize)
}

// CipherFormat returns the first version of the profile format that has the cipher with this
// name. It is Format0 for an empty name, and the newest version for an unknown name.
func CipherFormat(name string) Format { return formatOf(ciphers[:], name) }
