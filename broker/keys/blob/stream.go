// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// streamMagic is the beginning of every encrypted stream. Its last byte is the version of the
// layout.
const streamMagic = "CBS\x01"

// StreamPrefixSize is the size in bytes of the part of an encrypted stream before the wrapped
// key.
const StreamPrefixSize = len(streamMagic) + 2

// AppendStreamHeader appends the header of an encrypted stream, which has the wrapped key of its
// data key. A wrapped key has at most MaxSize bytes.
func AppendStreamHeader(dst, wrapped []byte) []byte {
	dst = append(dst, streamMagic...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(wrapped)))
	return append(dst, wrapped...)
}

// IsStream reports whether data begins as an encrypted stream does. It needs StreamPrefixSize
// bytes.
func IsStream(data []byte) bool {
	const name = len(streamMagic) - 1
	return len(data) >= StreamPrefixSize && string(data[:name]) == streamMagic[:name]
}

// StreamKeySize returns the size of the wrapped key of an encrypted stream, from the first
// StreamPrefixSize bytes of the stream. An error continues a sentence that begins with the name
// of the parsed value.
func StreamKeySize(prefix []byte) (int, error) {
	if !IsStream(prefix) {
		return 0, errors.New("is not an encrypted stream of a broker")
	}
	if version := prefix[len(streamMagic)-1]; version != streamMagic[len(streamMagic)-1] {
		return 0, fmt.Errorf("is an encrypted stream of version %d, expected version %d", version, streamMagic[len(streamMagic)-1])
	}
	size := int(binary.BigEndian.Uint16(prefix[len(streamMagic):]))
	if size == 0 || size > MaxSize {
		return 0, fmt.Errorf("has a wrapped key of %d bytes, expected 1 to %d", size, MaxSize)
	}
	return size, nil
}

// StreamAdditional returns the additional data with which a stream is encrypted: the first bytes
// of its header and the context. The wrapped key is not part of it, so that it can be replaced
// by another wrapped key of the same data key.
func StreamAdditional(context []byte) []byte { return append([]byte(streamMagic), context...) }
