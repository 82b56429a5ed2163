// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// magic is the beginning of every blob. Its last byte is the version of the layout.
const magic = "CBK\x01"

// Limits of sizes in bytes.
const (
	// MaxProviderSize is the size of the longest name of a provider.
	MaxProviderSize = 64
	// MaxKeyIDSize is the size of the longest id of a key.
	MaxKeyIDSize = 255
	// MaxKeyVersionSize is the size of the longest version of a key.
	MaxKeyVersionSize = 255
	// MaxSize is the size of the largest blob.
	MaxSize = 16 << 10
)

// Errors of contexts. Neither depends on a secret, so the caller may see both.
var (
	// ErrContext means that a blob was made with another context.
	ErrContext = errors.New("the wrapped key belongs to another context")

	// ErrUnboundContext means that an algorithm cannot bind a key to a context.
	ErrUnboundContext = errors.New("the wrapping algorithm cannot bind a key to a context, expected no context")
)

// Header says how to unwrap a key.
type Header struct {
	// Algorithm is the wrapping algorithm.
	Algorithm algorithm.Wrapping
	// Provider is the name of the provider of the wrapping key: 1 to MaxProviderSize bytes.
	Provider string
	// KeyID is the id of the wrapping key at the provider: 1 to MaxKeyIDSize bytes.
	KeyID string
	// KeyVersion is the version of the wrapping key: 0 to MaxKeyVersionSize bytes. It is
	// empty if the provider has no versions.
	KeyVersion string
	// ContextHash is the hash that [HashContext] returned. It is empty if there is no context,
	// and has to be empty if the algorithm cannot bind a context.
	ContextHash []byte
}

// HashContext returns the hash of a context. An empty context has no hash. The hash is SHA-256
// and not secret: anybody who has a blob can try contexts that are easy to guess.
func HashContext(context []byte) []byte {
	if len(context) == 0 {
		return nil
	}
	sum := sha256.Sum256(context)
	return sum[:]
}

// CheckContext returns ErrContext if the blob was made with another context.
func (h Header) CheckContext(context []byte) error {
	if subtle.ConstantTimeCompare(h.ContextHash, HashContext(context)) != 1 {
		return ErrContext
	}
	return nil
}

// Additional returns the additional data that binds the wrapped key to the header: the bytes
// of the header. It is nil if the algorithm cannot bind additional data. The header has to be
// valid, as it is after [Parse] and after [Header.Check].
func (h Header) Additional() []byte {
	if !h.Algorithm.BindsContext() {
		return nil
	}
	return h.append(nil)
}

// Check returns why the header cannot be encoded. The error is ErrUnboundContext if there is a
// context that the algorithm cannot bind.
func (h Header) Check() error {
	switch {
	case !h.Algorithm.IsKnown():
		return fmt.Errorf("blob: found the %s, expected a known one", h.Algorithm)
	case len(h.ContextHash) != 0 && len(h.ContextHash) != sha256.Size:
		return fmt.Errorf("blob: the hash of the context has %d bytes, expected none or %d", len(h.ContextHash), sha256.Size)
	case len(h.ContextHash) > 0 && !h.Algorithm.BindsContext():
		return ErrUnboundContext
	}
	for _, field := range []struct {
		name, value   string
		minSize, most int
	}{
		{"the name of the provider", h.Provider, 1, MaxProviderSize},
		{"the id of the key", h.KeyID, 1, MaxKeyIDSize},
		{"the version of the key", h.KeyVersion, 0, MaxKeyVersionSize},
	} {
		if len(field.value) < field.minSize || len(field.value) > field.most {
			return fmt.Errorf("blob: %s has %d bytes, expected %d to %d", field.name, len(field.value), field.minSize, field.most)
		}
		for _, c := range []byte(field.value) {
			if c <= ' ' || c > '~' {
				return fmt.Errorf("blob: %s has the byte 0x%02x, expected printable ASCII without spaces", field.name, c)
			}
		}
	}
	return nil
}

// append appends the header to dst.
func (h Header) append(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, byte(h.Algorithm))
	for _, field := range []string{h.Provider, h.KeyID, h.KeyVersion, string(h.ContextHash)} {
		dst = append(dst, byte(len(field)))
		dst = append(dst, field...)
	}
	return dst
}

// Encode returns the blob of a header and a wrapped key, which may not be empty.
func Encode(h Header, wrapped []byte) ([]byte, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	if len(wrapped) == 0 {
		return nil, errors.New("blob: found no wrapped key")
	}
	encoded := append(h.append(nil), wrapped...)
	if len(encoded) > MaxSize {
		return nil, fmt.Errorf("blob: found %d bytes with the header, expected at most %d", len(encoded), MaxSize)
	}
	return encoded, nil
}

// Parse returns the header and the wrapped key of a blob. The wrapped key is a part of data. An
// error continues a sentence that begins with the name of the parsed value.
func Parse(data []byte) (h Header, wrapped []byte, err error) {
	if len(data) > MaxSize {
		return Header{}, nil, fmt.Errorf("has %d bytes, expected at most %d", len(data), MaxSize)
	}
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		const name = len(magic) - 1
		if len(data) >= len(magic) && string(data[:name]) == magic[:name] {
			return Header{}, nil, fmt.Errorf("is a wrapped key of version %d, expected version %d", data[name], magic[name])
		}
		return Header{}, nil, errors.New("is not a wrapped key of a broker")
	}
	if len(rest) == 0 {
		return Header{}, nil, errTruncated
	}
	h.Algorithm, rest = algorithm.Wrapping(rest[0]), rest[1:]
	var hash string
	for _, field := range []*string{&h.Provider, &h.KeyID, &h.KeyVersion, &hash} {
		if len(rest) == 0 || len(rest)-1 < int(rest[0]) {
			return Header{}, nil, errTruncated
		}
		size := int(rest[0])
		*field, rest = string(rest[1:1+size]), rest[1+size:]
	}
	if hash != "" {
		h.ContextHash = []byte(hash)
	}
	if len(rest) == 0 {
		return Header{}, nil, errTruncated
	}
	if err := h.Check(); err != nil {
		return Header{}, nil, fmt.Errorf("is not a valid wrapped key: %w", err)
	}
	return h, rest, nil
}

var errTruncated = errors.New("ends before the wrapped key, expected more bytes")
