// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/hex"
	"maps"
	"slices"
)

func (v validator) keyConstraints(at place, k KeyConstraints) {
	v.keySizes(at.field("Subject"), k.Subject)
	v.keySizes(at.field("Issuer"), k.Issuer)
}

func (v validator) keySizes(at place, sizes map[string]KeySize) {
	for _, algorithm := range slices.Sorted(maps.Keys(sizes)) {
		where, size := at.field(algorithm), sizes[algorithm]
		var lowest, highest int
		switch algorithm {
		case "RSA":
			lowest, highest = minRSAKeySize, MaxRSAKeySize
		case "ECDSA":
			lowest, highest = minECDSAKeySize, maxECDSAKeySize
		case "Ed25519":
			lowest, highest = ed25519KeySize, ed25519KeySize
		default:
			v.add(where, at, "unknown key algorithm %s, expected one of %s%s", excerpt(algorithm), list(keyAlgorithms), didYouMean(algorithm, keyAlgorithms))
			continue
		}
		low := v.keySize(where.field("MinKeySize"), where, size.MinKeySize, lowest, highest)
		high := v.keySize(where.field("MaxKeySize"), where, size.MaxKeySize, lowest, highest)
		if low && high && size.MinKeySize > size.MaxKeySize {
			v.add(where.field("MinKeySize"), where, "found %d, expected at most MaxKeySize, which is %d", size.MinKeySize, size.MaxKeySize)
		}
	}
}

func (v validator) keySize(at, around place, bits, lowest, highest int) bool {
	switch {
	case v.failed[at] || v.failed[around]:
		return false
	case !v.present(at):
		v.add(at, around, "is missing, expected a size in bits from %d to %d", lowest, highest)
		return false
	case bits < lowest || bits > highest:
		v.add(at, around, "found %d, expected a size in bits from %d to %d", bits, lowest, highest)
		return false
	}
	return true
}

// ValidKeyID tells whether an id can be that of a key, in profiles, requests and
// for those who have keys: 1 to MaxKeyIDLength bytes of printable ASCII without
// spaces. So it can be a file name or a path in a key manager, and travels in
// messages unquoted.
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

// keyIDs checks the list of keys of the broker that an operation may use. A list
// that is there but empty could mean no key at all, or keys of requests.
func (v validator) keyIDs(at place, keys []KeyID) {
	if len(keys) == 0 && v.present(at) {
		v.add(at, at, "the list is empty, expected at least one key; leave the field out where requests bring their keys")
	}
	first := map[string]int{}
	for i, key := range keys {
		where := at.index(i)
		id := where.field("Id")
		switch before, twice := first[key.ID]; {
		case key.ID == "":
			v.required(id, where, "a key id of 1 to 64 bytes")
		case len(key.ID) > MaxKeyIDLength:
			v.add(id, where, "the key id has %d bytes, expected at most %d", len(key.ID), MaxKeyIDLength)
		case !ValidKeyID(key.ID):
			v.add(id, where, "found %s, expected printable ASCII without spaces", excerpt(key.ID))
		case key.ID == AnyKeyID && len(keys) > 1:
			v.add(id, where, "found %q, which stands for every key of the broker, beside other keys, expected it alone in the list", key.ID)
		case twice:
			v.add(id, where, "the key id %q is already in the list, at index %d", key.ID, before)
		default:
			first[key.ID] = i
		}
		pin := where.field("SPKISHA256")
		if key.SPKISHA256 == "" && !v.present(pin) {
			continue
		}
		if key.ID == AnyKeyID {
			v.add(pin, where, "found a pin of %q, which stands for every key of the broker, expected no SPKISHA256", key.ID)
			continue
		}
		if sum, err := hex.DecodeString(key.SPKISHA256); err != nil || len(sum) != 32 {
			v.add(pin, where, "found %s, expected 64 hexadecimal digits, the SHA-256 of the public key", excerpt(key.SPKISHA256))
		}
	}
}
