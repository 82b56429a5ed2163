// SPDX-License-Identifier: Apache-2.0

package cryptobroker

// Key is a key of a request: the id of a key of the broker, or the key itself. Its zero value
// is no key.
type Key struct {
	id  string
	raw []byte
}

// KeyID returns the key of the broker with an id. The id has at most 64 bytes of printable
// ASCII without spaces. The profile has to list it.
func KeyID(id string) Key { return Key{id: id} }

// RawKey returns a key that the request brings: the 16, 24 or 32 bytes of an AES key, or a key
// in PEM or DER, at most 64 KiB. A profile that lists keys of the broker refuses it.
func RawKey(key []byte) Key { return Key{raw: key} }

func (k Key) isZero() bool { return k.id == "" && k.raw == nil }

// append appends the key as the field of a request.
func (k Key) append(b []byte, n number) []byte {
	if k.isZero() {
		return b
	}
	start := len(b)
	if k.raw != nil {
		// An empty key is sent, so that the broker refuses it.
		b = appendAlways(b, keyRaw, k.raw)
	} else {
		b = appendString(b, keyID, k.id)
	}
	return nest(b, start, n)
}

func (k Key) size() int { return len(k.id) + len(k.raw) + 16 }

// appendSigning appends the key, or the keys of a hybrid, as the field of a request.
func appendSigning(b []byte, n number, key, postQuantum Key) []byte {
	start := len(b)
	if postQuantum.isZero() {
		b = key.append(b, signSingle)
	} else {
		b = key.append(b, componentKeys)
		b = postQuantum.append(b, componentKeys)
		b = nest(b, start, signMultiple)
	}
	return nest(b, start, n)
}
