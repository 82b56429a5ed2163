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

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
)

// wireStream is gRPC's stream of a call, which it hands to handlers as an interface
// with less. By this one the broker learns of a message's length before the client
// may send the whole message, and reads it into memory of its own.
type wireStream interface {
	// ReadMessageHeader fills a buffer, having told the client to send that much.
	ReadMessageHeader(into []byte) error
	// RecvCompress names what messages are compressed by.
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
	// head says whether a message is compressed, and how long it is.
	head [5]byte
	// awaitsMemory says that a message waits for memory, so that its client has to wait.
	awaitsMemory atomic.Bool
}

// Open begins to read the messages of a call, of at most limit bytes each. It refuses
// messages that are compressed.
func (in *Incoming) Open(ctx context.Context, p *Slot, what fmt.Stringer, limit int, idleTime time.Duration) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(wireStream)
	if !ok {
		return status.Errorf(codes.Internal, "%s: this version of gRPC has no stream that the broker can read", what)
	}
	// The broker closes connections of clients that keep the memory of others after half
	// of this time.
	in.stream, in.Slot, in.What, in.limit, in.MemoryWait = stream, p, what, limit, 2*idleTime
	if name := stream.RecvCompress(); name != "" && name != encoding.Identity {
		return in.compressed()
	}
	return nil
}

func (in *Incoming) compressed() error {
	return status.Errorf(codes.Unimplemented, "%s: its messages are compressed, expected messages that are not: this broker takes no others", in.What)
}

// Next returns the next message, or io.EOF where there is none. Its buffer goes back to
// [Buffers], and its memory belongs to the slot: [Incoming.Done] does both.
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
	// While it waits for memory it is not the client that is slow.
	in.Slot.clientDone()
	in.awaitsMemory.Store(true)
	err := in.Slot.TakeMemory(ctx, in.What, int(size), in.MemoryWait)
	in.awaitsMemory.Store(false)
	if err != nil {
		return nil, err
	}
	in.Slot.conn.Caller.credit(len(in.head) + int(size))
	buffer := Buffers.Get(int(size))
	in.Slot.awaitClient(time.Now())
	err = in.stream.ReadMessageHeader(*buffer)
	in.Slot.clientDone()
	if err != nil {
		Buffers.Put(buffer)
		return nil, in.broken(ctx, err)
	}
	return buffer, nil
}

// WaitsForMemory reports whether a message waits for memory, so that its client has to wait.
func (in *Incoming) WaitsForMemory() bool { return in.awaitsMemory.Load() }

// Done gives a message and its memory back.
func (in *Incoming) Done(wire *[]byte) {
	Buffers.Put(wire)
	in.Slot.ReleaseMemory()
}

// Only returns the message of a call that has one message, as [Incoming.Next] does.
func (in *Incoming) Only(ctx context.Context) (*[]byte, error) {
	in.Slot.awaitClient(time.Now())
	buffer, err := in.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, status.Errorf(codes.InvalidArgument, "%s: there is no request, expected one message", in.What)
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
		err = status.Errorf(codes.InvalidArgument, "%s: there is more than one request, expected one message", in.What)
	default:
		err = in.broken(ctx, err)
	}
	Buffers.Put(buffer)
	return nil, err
}

// broken returns the error of a message that did not come as a whole.
func (in *Incoming) broken(ctx context.Context, err error) error {
	switch _, known := status.FromError(err); {
	case ctx.Err() != nil:
		in.Slot.conn.Caller.noteMisuse()
		return status.FromContextError(ctx.Err()).Err()
	case known:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return status.Errorf(codes.InvalidArgument, "%s: a message ends before its length", in.What)
	}
	return status.Errorf(codes.Unavailable, "%s: the connection ended before a message did", in.What)
}
