// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// KeyPolicy says which keys of the broker an operation may use by reference, and
// who has them. A nil KeyPolicy allows none: requests bring their own.
type KeyPolicy struct {
	// pins are those of the listed keys, nil where a key is not pinned. The map is
	// nil where the profile has no list.
	pins map[string]*[sha256.Size]byte
	// any is whether the list is AnyKeyID.
	any bool
	// manager is the Client of the KMS that has the keys, external whether there
	// is one.
	manager  string
	external bool
}

// Manager is the external key manager that the profile takes keys from, by the
// Client of its KMS; false where keys are the broker's own.
func (p *KeyPolicy) Manager() (client string, external bool) {
	if p == nil {
		return "", false
	}
	return p.manager, p.external
}

// ByReference reports whether the operation takes keys of the broker, named by
// their ids, and none that comes with the request. Otherwise it is the other way
// round.
func (p *KeyPolicy) ByReference() bool { return p != nil && p.pins != nil }

// Allows reports whether the operation may use the broker's key of this id.
func (p *KeyPolicy) Allows(id string) bool {
	if !p.ByReference() {
		return false
	}
	_, ok := p.pins[id]
	return ok || p.any
}

// IDs are those of the listed keys, sorted.
func (p *KeyPolicy) IDs() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.pins))
}

// Pin returns the SHA-256 of the DER SubjectPublicKeyInfo (RFC 5280, section
// 4.1.2.7) that the key of this id must have; false where it is not pinned.
func (p *KeyPolicy) Pin(id string) ([sha256.Size]byte, bool) {
	if p == nil || p.pins[id] == nil {
		return [sha256.Size]byte{}, false
	}
	return *p.pins[id], true
}

func compileKeyIDs(keys []KeyID, manager *KMS) *KeyPolicy {
	if len(keys) == 0 && manager == nil {
		return nil
	}
	p := &KeyPolicy{external: manager != nil}
	if manager != nil {
		p.manager = strings.Clone(manager.Client)
	}
	if len(keys) > 0 {
		p.pins = make(map[string]*[sha256.Size]byte, len(keys))
	}
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
	p.any = AllowsAnyKey(keys)
	return p
}

// AllowsAnyKey reports whether a valid list stands for every key of the broker.
func AllowsAnyKey(keys []KeyID) bool { return len(keys) == 1 && keys[0].ID == AnyKeyID }

// managerOf is the key manager of a profile: its own, else that of the file. One
// without a word in it is none.
func managerOf(p *Profile, doc *Document) *KMS {
	for _, k := range []*KMS{p.KMS, doc.KMS} {
		if k != nil {
			if k.Client == "" && len(k.Config) == 0 && len(k.Cache) == 0 {
				return nil
			}
			return k
		}
	}
	return nil
}
