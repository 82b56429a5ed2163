// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

const (
	// partedInput is the size in bytes from which an input is not joined.
	partedInput = 64 << 10
	// maxBeside is the size in bytes of the largest other field of such a request.
	maxBeside = 2 << 10
	// maxParts is how many parts a request may have that is not joined. Clients need
	// some 70 for the largest input; many small ones would take more memory than it.
	maxParts = 256
)

// input is a large input that came in parts. It takes no memory beside them.
type input struct {
	parts [][]byte
	size  int // of all parts, in bytes; 0 where the input is in the request
}

// reuse lets go of the parts and keeps room for those of the next request.
func (i input) reuse() input {
	clear(i.parts)
	return input{parts: i.parts[:0]}
}

// readParts reads a request for a digest, by the rules of readHash, whose input is
// large. It returns what the request has beside the input, or false, and then the
// input and the message are as they were.
func readParts(data mem.BufferSlice, m proto.Message, into *input) (beside []byte, ok bool) {
	if len(data) > maxParts || data.Len() < partedInput || !asksForDigest(m) {
		return nil, false
	}
	found := input{parts: into.parts[:0]}
	for r := (partReader{data: data}); !r.empty(); {
		tag, value, ok := r.field()
		switch {
		case !ok:
			return nil, false
		case tag == tagHashInput:
			if found.size > 0 || value < partedInput || value > uint64(data.Len()) {
				return nil, false
			}
			found.size = int(value)
			ok = r.take(found.size, func(part []byte) { found.parts = append(found.parts, part) })
		case tag == tagHashFormat:
			beside = protowire.AppendVarint(append(beside, tag), value)
		case value > maxBeside:
			return nil, false
		default:
			beside = protowire.AppendVarint(append(beside, tag), value)
			ok = r.take(int(value), func(part []byte) { beside = append(beside, part...) })
		}
		if !ok || len(beside) > 2*maxBeside {
			return nil, false
		}
	}
	if found.size == 0 || !readHash(beside, m) {
		return nil, false
	}
	*into = found
	return beside, true
}

func asksForDigest(m proto.Message) bool {
	switch m.(type) {
	case *v0.HashRequest, *v0.HashDataRequest, *v1.HashDataRequest:
		return true
	}
	return false
}

// partReader reads what is in parts.
type partReader struct {
	data mem.BufferSlice
	part []byte // the rest of the one that was begun
}

// empty tells whether everything was read. Unless it is, there is a part.
func (r *partReader) empty() bool {
	for len(r.part) == 0 && len(r.data) > 0 {
		r.part, r.data = r.data[0].ReadOnlyData(), r.data[1:]
	}
	return len(r.part) == 0
}

// field reads a tag of one byte and the number behind it, which all fields of
// readHash have.
func (r *partReader) field() (tag byte, value uint64, ok bool) {
	var number [binary.MaxVarintLen64 + 1]byte
	for n := range number {
		if r.empty() {
			return 0, 0, false
		}
		number[n], r.part = r.part[0], r.part[1:]
		if n > 0 && number[n] < 0x80 {
			value, size := protowire.ConsumeVarint(number[1 : n+1])
			return number[0], value, size > 0
		}
	}
	return 0, 0, false
}

// take gives the next bytes, part by part; false where there are fewer.
func (r *partReader) take(size int, give func([]byte)) bool {
	for size > 0 {
		if r.empty() {
			return false
		}
		n := min(size, len(r.part))
		give(r.part[:n:n])
		r.part, size = r.part[n:], size-n
	}
	return true
}
