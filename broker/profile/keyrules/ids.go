// SPDX-License-Identifier: Apache-2.0

package keyrules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// AnyID is the id that stands for every key of the broker's directory. It has to be alone in
// its list, and SignCertificate does not allow it. Keys of key providers, whose ids have a slash,
// must be listed one by one, because a key manager has keys of other users, too.
const AnyID = "*"

// MaxIDLength is the longest key id, in bytes, as on the wire.
const MaxIDLength = 64

// ID allows one key of the broker by its id, or all keys by [AnyID]. It may pin the
// key to a public key.
type ID struct {
	ID string `yaml:"Id"`
	// SPKISHA256 is the SHA-256 of the SubjectPublicKeyInfo in DER, in 64 hexadecimal
	// digits. If it is empty, the key is not pinned.
	SPKISHA256 string `yaml:"SPKISHA256,omitempty"`
}

// ValidID reports whether a key can have this id: 1 to MaxIDLength bytes of printable ASCII
// without spaces. Such an id can be a file name or a path in a key manager, and needs no quotes
// in messages.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxIDLength {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// CheckIDs adds what is wrong with the list of keys that an operation may use. It refuses an
// empty list, which could mean no key at all, or keys of requests.
func CheckIDs(r *yamlfile.Report, at yamlfile.Place, keys []ID) {
	if len(keys) == 0 && r.Present(at) {
		r.Add(at, at, "the list is empty, expected at least one key; leave the field out where requests bring their keys")
	}
	first := map[string]int{}
	for i, key := range keys {
		where := at.Index(i)
		id := where.Field("Id")
		switch before, twice := first[key.ID]; {
		case key.ID == "":
			r.Required(id, where, "a key id of 1 to 64 bytes")
		case len(key.ID) > MaxIDLength:
			r.Add(id, where, "the key id has %d bytes, expected at most %d", len(key.ID), MaxIDLength)
		case !ValidID(key.ID):
			r.Add(id, where, "found %s, expected printable ASCII without spaces", yamlfile.Excerpt(key.ID))
		case key.ID == AnyID && len(keys) > 1:
			r.Add(id, where, "found %q, which stands for every key of the broker, together with other keys, expected it as the only entry", key.ID)
		case twice:
			r.Add(id, where, "the key id %q is already in the list, at index %d", key.ID, before)
		default:
			first[key.ID] = i
		}
		pin := where.Field("SPKISHA256")
		if key.SPKISHA256 == "" && !r.Present(pin) {
			continue
		}
		if key.ID == AnyID {
			r.Add(pin, where, "found a pin of %q, which stands for every key of the broker, expected no SPKISHA256", key.ID)
			continue
		}
		if sum, err := hex.DecodeString(key.SPKISHA256); err != nil || len(sum) != 32 {
			r.Add(pin, where, "found %s, expected 64 hexadecimal digits, the SHA-256 of the public key", yamlfile.Excerpt(key.SPKISHA256))
		}
	}
}

// AllowsAny reports whether a valid list allows every key of the broker.
func AllowsAny(keys []ID) bool { return len(keys) == 1 && keys[0].ID == AnyID }

// IsOfKeyProvider reports whether a key of this id is not in the broker's directory, so that
// AnyID does not stand for it. Such an id has a slash.
func IsOfKeyProvider(id string) bool { return strings.Contains(id, "/") }

// Policy says which keys an operation may use by their ids, and whether the broker or a
// key manager has them. A nil Policy allows none: requests bring their keys.
type Policy struct {
	// pins has the listed keys, with nil for a key that is not pinned. The map is nil if the
	// profile has no list.
	pins map[string]*[sha256.Size]byte
	// any reports whether the list is AnyID.
	any bool
	// external reports whether an external key manager has the keys. manager is the Client of its
	// KMS.
	manager  string
	external bool
	// file and cached are the results of SettingsFile.
	file   string
	cached bool
}

// Manager reports whether an external key manager has the keys. client is the Client of its
// KMS.
func (p *Policy) Manager() (client string, external bool) {
	if p == nil {
		return "", false
	}
	return p.manager, p.external
}

// SettingsFile returns the name of the file that says how to reach the key manager, and whether
// keys may be kept. It reports false if the operation takes no keys from the key manager.
func (p *Policy) SettingsFile() (file string, cached, ok bool) {
	if p == nil {
		return "", false, false
	}
	return p.file, p.cached, p.file != ""
}

// ByReference reports whether requests name keys of the broker by their ids. If not, requests
// bring their keys.
func (p *Policy) ByReference() bool { return p != nil && p.pins != nil }

// Allows reports whether the operation may use the broker's key of this id.
func (p *Policy) Allows(id string) bool {
	if !p.ByReference() {
		return false
	}
	_, ok := p.pins[id]
	return ok || p.any && !IsOfKeyProvider(id)
}

// IDs returns the ids of the listed keys, sorted.
func (p *Policy) IDs() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.pins))
}

// Pin returns the SHA-256 of the SubjectPublicKeyInfo in DER (RFC 5280, section 4.1.2.7) to
// which the key of this id is pinned. It reports false if the key is not pinned.
func (p *Policy) Pin(id string) ([sha256.Size]byte, bool) {
	if p == nil || p.pins[id] == nil {
		return [sha256.Size]byte{}, false
	}
	return *p.pins[id], true
}

// Manager is an external key manager that has the keys of a profile.
type Manager struct {
	// Client is the Client of its KMS.
	Client string
	// File is the name of the file that says how to reach the key manager. It is empty if the
	// operation takes no keys from it. Cached reports whether keys may be kept.
	File   string
	Cached bool
}

// NewPolicy returns the policy of a list without problems. manager is nil if the broker has the
// keys. The policy is nil if there is neither a list nor a manager.
func NewPolicy(keys []ID, manager *Manager) *Policy {
	if len(keys) == 0 && manager == nil {
		return nil
	}
	p := &Policy{external: manager != nil}
	if manager != nil {
		p.manager, p.file, p.cached = strings.Clone(manager.Client), strings.Clone(manager.File), manager.Cached
	}
	if len(keys) > 0 {
		p.pins = make(map[string]*[sha256.Size]byte, len(keys))
	}
	for _, key := range keys {
		var pin *[sha256.Size]byte
		if key.SPKISHA256 != "" {
			pin = new([sha256.Size]byte)
			if n, err := hex.Decode(pin[:], []byte(key.SPKISHA256)); err != nil || n != len(pin) {
				panic("keyrules: policy of a list that was not checked")
			}
		}
		p.pins[strings.Clone(key.ID)] = pin
	}
	p.any = AllowsAny(keys)
	return p
}

// Refusal returns why calls may not use the key with an id, or an empty text. An empty id stands for
// a key of the request.
func (p *Policy) Refusal(id string) string {
	_, external := p.Manager()
	switch {
	case id == "" && p.ByReference():
		return "keys of requests, expected one of the keys in KeyIds"
	case id == "":
		return ""
	case external && p.file != "" && !p.ByReference():
		return ""
	case external && p.file == "":
		return "keys of the broker, expected keys of an external key manager"
	case !p.ByReference():
		return "keys of the broker, expected keys of requests"
	case !p.Allows(id):
		return fmt.Sprintf("the key %q, which KeyIds does not list", id)
	default:
		return ""
	}
}

// Sources returns the ids of the keys that calls may use. An empty id stands for a key of the
// request.
func (p *Policy) Sources() []string {
	if p.ByReference() {
		return p.IDs()
	}
	return []string{""}
}
