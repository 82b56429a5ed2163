// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
)

// Codec is gRPC's codec for protobuf, for both ends of the protocol. It overwrites encoded
// messages after use, because they contain data keys and plaintexts.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// Name implements encoding.CodecV2.
func (Codec) Name() string { return protocodec.Name }

// Marshal implements encoding.CodecV2. It overwrites the secret of a response, which is encoded once.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("gateway: cannot encode a %T, expected a message of protobuf", v)
	}
	size := proto.Size(message)
	buffer := cleared.Get(size)
	encoded, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], message)
	if err != nil {
		cleared.Put(buffer)
		return nil, err
	}
	*buffer = encoded
	switch response := v.(type) {
	case *gatewayv1.UnwrapResponse:
		clear(response.GetDataKey())
	case *gatewayv1.DecryptResponse:
		clear(response.GetPlaintext())
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, cleared)}, nil
}

// Unmarshal implements encoding.CodecV2. The message has copies of what it needs, and gRPC does
// not use data afterwards.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("gateway: cannot decode a %T, expected a message of protobuf", v)
	}
	whole := data.MaterializeToBuffer(cleared)
	defer whole.Free()
	err := proto.Unmarshal(whole.ReadOnlyData(), message)
	for _, part := range data {
		clear(part.ReadOnlyData())
	}
	return err
}

// cleared is the pool of buffers for messages.
var cleared = clearedBuffers{mem.DefaultBufferPool()}

// clearedBuffers overwrites the buffers of a pool before they are used again.
type clearedBuffers struct{ mem.BufferPool }

// leastBuffer is the least size in bytes of a buffer. gRPC does not return smaller buffers than
// half this size to the pool.
const leastBuffer = 2 << 10

// Get implements mem.BufferPool.
func (p clearedBuffers) Get(size int) *[]byte {
	buffer := p.BufferPool.Get(max(size, leastBuffer))
	*buffer = (*buffer)[:size]
	return buffer
}

// Put implements mem.BufferPool.
func (p clearedBuffers) Put(buffer *[]byte) {
	clear((*buffer)[:cap(*buffer)])
	p.BufferPool.Put(buffer)
}
