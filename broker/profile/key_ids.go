// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// AnyKeyID is the id that stands for every key of the broker's directory. It has to be alone in
// its list, and SignCertificate does not allow it. Keys of key providers, whose ids have a slash,
// must be listed one by one, because a key manager has keys of other users, too.
const AnyKeyID = "*"

// KeyID allows one key of the broker by its id, or all keys by [AnyKeyID]. It may pin the
// key to a public key.
type KeyID struct {
	ID string `yaml:"Id"`
	// SPKISHA256 is the SHA-256 of the SubjectPublicKeyInfo in DER, in 64 hexadecimal
	// digits. If it is empty, the key is not pinned.
	SPKISHA256 string `yaml:"SPKISHA256,omitempty"`
}

// ValidKeyID reports whether a key can have this id: 1 to MaxKeyIDLength bytes of printable ASCII
// without spaces. Such an id can be a file name or a path in a key manager, and needs no quotes
// in messages.
func ValidKeyID(id string) bool {
	if id == "" || len(id) > MaxKeyIDLength {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// keyIDs checks the list of keys of the broker that an operation may use. It refuses an
// empty list, which could mean no key at all, or keys of requests.
func (v validator) keyIDs(at yamlfile.Place, keys []KeyID) {
	if len(keys) == 0 && v.Present(at) {
		v.Add(at, at, "the list is empty, expected at least one key; leave the field out where requests bring their keys")
	}
	first := map[string]int{}
	for i, key := range keys {
		where := at.Index(i)
		id := where.Field("Id")
		switch before, twice := first[key.ID]; {
		case key.ID == "":
			v.Required(id, where, "a key id of 1 to 64 bytes")
		case len(key.ID) > MaxKeyIDLength:
			v.Add(id, where, "the key id has %d bytes, expected at most %d", len(key.ID), MaxKeyIDLength)
		case !ValidKeyID(key.ID):
			v.Add(id, where, "found %s, expected printable ASCII without spaces", yamlfile.Excerpt(key.ID))
		case key.ID == AnyKeyID && len(keys) > 1:
			v.Add(id, where, "found %q, which stands for every key of the broker, together with other keys, expected it as the only entry", key.ID)
		case twice:
			v.Add(id, where, "the key id %q is already in the list, at index %d", key.ID, before)
		default:
			first[key.ID] = i
		}
		pin := where.Field("SPKISHA256")
		if key.SPKISHA256 == "" && !v.Present(pin) {
			continue
		}
		if key.ID == AnyKeyID {
			v.Add(pin, where, "found a pin of %q, which stands for every key of the broker, expected no SPKISHA256", key.ID)
			continue
		}
		if sum, err := hex.DecodeString(key.SPKISHA256); err != nil || len(sum) != 32 {
			v.Add(pin, where, "found %s, expected 64 hexadecimal digits, the SHA-256 of the public key", yamlfile.Excerpt(key.SPKISHA256))
		}
	}
}

// AllowsAnyKey reports whether a valid list allows every key of the broker.
func AllowsAnyKey(keys []KeyID) bool { return len(keys) == 1 && keys[0].ID == AnyKeyID }

// IsOfKeyProvider reports whether a key of this id is not in the broker's directory, so that
// AnyKeyID does not stand for it. Such an id has a slash.
func IsOfKeyProvider(id string) bool { return strings.Contains(id, "/") }

// NamesKeyProviders reports whether one of the profiles lists a key of a key provider, whose id
// is <provider>/<id>.
func NamesKeyProviders(profiles []Profile) bool {
	for i := range profiles {
		for _, row := range sections {
			listed := row.of(&profiles[i].API)
			if listed != nil && slices.ContainsFunc(listed.listedKeys(), func(key KeyID) bool { return strings.Index(key.ID, "/") > 0 }) {
				return true
			}
		}
	}
	return false
}

// KeyPolicy says which keys an operation may use by their ids, and whether the broker or a
// key manager has them. A nil KeyPolicy allows none: requests bring their keys.
type KeyPolicy struct {
	// pins has the listed keys, with nil for a key that is not pinned. The map is nil if the
	// profile has no list.
	pins map[string]*[sha256.Size]byte
	// any reports whether the list is AnyKeyID.
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
func (p *KeyPolicy) Manager() (client string, external bool) {
	if p == nil {
		return "", false
	}
	return p.manager, p.external
}

// SettingsFile returns the name of the file that says how to reach the key manager, and whether
// keys may be kept. It reports false if the operation takes no keys from the key manager.
func (p *KeyPolicy) SettingsFile() (file string, cached, ok bool) {
	if p == nil {
		return "", false, false
	}
	return p.file, p.cached, p.file != ""
}

// readFrom allows the operation to use keys of a key manager, if its settings are in a file.
func (p *KeyPolicy) readFrom(manager *KMS) *KeyPolicy {
	if file, cached, ok := manager.settingsFile(); ok {
		p.file, p.cached = strings.Clone(file), cached
	}
	return p
}

// ByReference reports whether requests name keys of the broker by their ids. If not, requests
// bring their keys.
func (p *KeyPolicy) ByReference() bool { return p != nil && p.pins != nil }

// Allows reports whether the operation may use the broker's key of this id.
func (p *KeyPolicy) Allows(id string) bool {
	if !p.ByReference() {
		return false
	}
	_, ok := p.pins[id]
	return ok || p.any && !IsOfKeyProvider(id)
}

// IDs returns the ids of the listed keys, sorted.
func (p *KeyPolicy) IDs() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.pins))
}

// Pin returns the SHA-256 of the SubjectPublicKeyInfo in DER (RFC 5280, section 4.1.2.7) to
// which the key of this id is pinned. It reports false if the key is not pinned.
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

// managerOf returns the key manager of a profile, or else the key manager of the file. It returns
// nil if there is none, or if it has no values.
func managerOf(p *Profile, doc *Document) *KMS {
	for _, k := range []*KMS{p.KMS, doc.KMS} {
		if k != nil {
			if k.empty() {
				return nil
			}
			return k
		}
	}
	return nil
}

// refusal returns why calls may not use a key from its source, or an empty text. The source is
// the request or the broker.
func (p *KeyPolicy) refusal(key UsedKey) string {
	_, external := p.Manager()
	switch {
	case key.ID == "" && p.ByReference():
		return "keys of requests, expected one of the keys in KeyIds"
	case key.ID == "":
		return ""
	case external && p.file != "" && !p.ByReference():
		return ""
	case external && p.file == "":
		return "keys of the broker, expected keys of an external key manager"
	case !p.ByReference():
		return "keys of the broker, expected keys of requests"
	case !p.Allows(key.ID):
		return fmt.Sprintf("the key %q, which KeyIds does not list", key.ID)
	default:
		return ""
	}
}

// sources returns the ids of the keys that calls may use. An empty id stands for a key of the
// request.
func (p *KeyPolicy) sources() []string {
	if p.ByReference() {
		return p.IDs()
	}
	return []string{""}
}
