// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
)

// wireStream is gRPC's stream of a call. The interface that gRPC documents for it does not have
// these methods. With these methods the broker reads the length of a message before the client
// may send the whole message, and reads the message into its own memory.
type wireStream interface {
	// ReadMessageHeader allows the client to send as many bytes as the buffer has, and fills
	// the buffer.
	ReadMessageHeader(into []byte) error
	// RecvCompress returns the name of the compression of messages, or the empty string.
	RecvCompress() string
}

// Incoming reads the messages of a call.
type Incoming struct {
	stream wireStream
	Slot   *Slot
	What   fmt.Stringer // names the call in errors
	// limit is the largest message in bytes.
	limit int
	// MemoryWait is how long a message may wait for memory.
	MemoryWait time.Duration
	// head is the prefix of a message: one byte says whether it is compressed, four bytes
	// are its length.
	head [5]byte
	// awaitsMemory reports whether a message waits for memory. Its client waits as well.
	awaitsMemory atomic.Bool
}

// Open begins to read the messages of a call, of at most limit bytes each. It refuses
// compressed messages with UNIMPLEMENTED.
func (in *Incoming) Open(ctx context.Context, p *Slot, what fmt.Stringer, limit int, idleTime time.Duration) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(wireStream)
	if !ok {
		return status.Errorf(codes.Internal, "%s: the stream of this version of gRPC has no ReadMessageHeader, expected one that has", what)
	}
	p.ended = ctx.Done()
	// A client that holds memory and sends nothing loses its connection after idleTime. So its
	// memory is free after twice that time.
	in.stream, in.Slot, in.What, in.limit, in.MemoryWait = stream, p, what, limit, 2*idleTime
	if name := stream.RecvCompress(); name != "" && name != encoding.Identity {
		return in.compressed()
	}
	return nil
}

func (in *Incoming) compressed() error {
	return status.Errorf(codes.Unimplemented, "%s: found compressed messages, expected uncompressed ones", in.What)
}

// Next returns the next message, or io.EOF if there is none. [Incoming.Done] releases the buffer
// of the message, which is from [buffers.Pool], and its memory, which the slot holds.
func (in *Incoming) Next(ctx context.Context) (*[]byte, error) {
	if err := in.stream.ReadMessageHeader(in.head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, in.broken(ctx, err)
	}
	size := binary.BigEndian.Uint32(in.head[1:])
	switch {
	case in.head[0] != 0:
		return nil, in.compressed()
	case int64(size) > int64(in.limit):
		return nil, status.Errorf(codes.InvalidArgument, "%s: a message has %d bytes, expected at most %d", in.What, size, in.limit)
	}
	// The time for which the message waits for memory does not count as time of the client.
	in.Slot.clientDone()
	in.awaitsMemory.Store(true)
	err := in.Slot.TakeMemory(ctx, in.What, int(size), in.MemoryWait)
	in.awaitsMemory.Store(false)
	if err != nil {
		return nil, err
	}
	in.Slot.conn.Caller.credit(len(in.head) + int(size))
	buffer := buffers.Pool.Get(int(size))
	in.Slot.awaitClient(time.Now())
	err = in.stream.ReadMessageHeader(*buffer)
	in.Slot.clientDone()
	if err != nil {
		buffers.Pool.Put(buffer)
		return nil, in.broken(ctx, err)
	}
	return buffer, nil
}

// Reserve takes memory in bytes for all messages that follow, see [Slot.Reserve].
func (in *Incoming) Reserve(ctx context.Context, bytes int64) error {
	in.awaitsMemory.Store(true)
	defer in.awaitsMemory.Store(false)
	return in.Slot.Reserve(ctx, in.What, bytes, in.MemoryWait)
}

// WaitsForMemory reports whether a message waits for memory, and its client waits as well.
func (in *Incoming) WaitsForMemory() bool { return in.awaitsMemory.Load() }

// Done releases the buffer of a message and its memory.
func (in *Incoming) Done(wire *[]byte) {
	buffers.Pool.Put(wire)
	in.Slot.ReleaseMemory()
}

// Only returns the message of a call that has one message, as [Incoming.Next] does.
func (in *Incoming) Only(ctx context.Context) (*[]byte, error) {
	in.Slot.awaitClient(time.Now())
	buffer, err := in.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, status.Errorf(codes.InvalidArgument, "%s: found no request, expected one message", in.What)
	}
	if err != nil {
		return nil, err
	}
	in.Slot.awaitClient(time.Now())
	err = in.stream.ReadMessageHeader(in.head[:])
	in.Slot.clientDone()
	switch {
	case errors.Is(err, io.EOF):
		return buffer, nil
	case err == nil:
		err = status.Errorf(codes.InvalidArgument, "%s: found more than one request, expected one message", in.What)
	default:
		err = in.broken(ctx, err)
	}
	buffers.Pool.Put(buffer)
	return nil, err
}

// broken returns the error of a message that did not arrive completely.
func (in *Incoming) broken(ctx context.Context, err error) error {
	switch _, known := status.FromError(err); {
	case ctx.Err() != nil:
		in.Slot.conn.Caller.noteMisuse()
		return status.FromContextError(ctx.Err()).Err()
	case known:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return status.Errorf(codes.InvalidArgument, "%s: a message is shorter than its length prefix says", in.What)
	}
	return status.Errorf(codes.Unavailable, "%s: the connection ended in the middle of a message", in.What)
}
