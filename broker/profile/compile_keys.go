// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// KeyPolicy says which keys an operation may use. A nil KeyPolicy allows any.
type KeyPolicy struct {
	pins map[string]*[sha256.Size]byte // nil where the key is not pinned
}

// Restricts tells that only listed keys may be used. A key that comes with the
// request is in no list, so it may not.
func (p *KeyPolicy) Restricts() bool { return p != nil }

// Allows tells whether the operation may use the key of this id.
func (p *KeyPolicy) Allows(id string) bool {
	if p == nil {
		return true
	}
	_, ok := p.pins[id]
	return ok
}

// Pin returns the SHA-256 of the DER SubjectPublicKeyInfo (RFC 5280, section
// 4.1.2.7) that the key of this id must have; false where it is not pinned.
func (p *KeyPolicy) Pin(id string) ([sha256.Size]byte, bool) {
	if p == nil || p.pins[id] == nil {
		return [sha256.Size]byte{}, false
	}
	return *p.pins[id], true
}

func compileKeyIDs(keys []KeyID) *KeyPolicy {
	if len(keys) == 0 {
		return nil
	}
	p := &KeyPolicy{pins: make(map[string]*[sha256.Size]byte, len(keys))}
	for _, key := range keys {
		var pin *[sha256.Size]byte
		if key.SPKISHA256 != "" {
			pin = new([sha256.Size]byte)
			if n, err := hex.Decode(pin[:], []byte(key.SPKISHA256)); err != nil || n != len(pin) {
				panic("profile: compile of a profile that was not validated")
			}
		}
		p.pins[strings.Clone(key.ID)] = pin
	}
	return p
}
