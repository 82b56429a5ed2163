// SPDX-License-Identifier: Apache-2.0

package server

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

// incoming are the messages of a call.
type incoming struct {
	stream wireStream
	place  *place
	what   fmt.Stringer // names the call in errors
	// limit is the largest message in bytes.
	limit int
	// patience is how long a message may wait for memory.
	patience time.Duration
	// head is that of a message: whether it is compressed, and its length.
	head [5]byte
	// granting says that a message waits for memory, so that its client has to wait.
	granting atomic.Bool
}

// open begins with the messages of a call.
func (in *incoming) open(ctx context.Context, p *place, what fmt.Stringer, limit int, idleTime time.Duration) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(wireStream)
	if !ok {
		return status.Errorf(codes.Internal, "%s: this version of gRPC has no stream that the broker can read", what)
	}
	// Clients that keep the memory of others are let go of after half of this.
	in.stream, in.place, in.what, in.limit, in.patience = stream, p, what, limit, 2*idleTime
	if name := stream.RecvCompress(); name != "" && name != encoding.Identity {
		return in.compressed()
	}
	return nil
}

func (in *incoming) compressed() error {
	return status.Errorf(codes.Unimplemented, "%s: its messages are compressed, expected messages that are not: this broker takes no others", in.what)
}

// next returns the next message, io.EOF where there is none. Who calls puts it back
// into buffers. Its memory belongs to the place.
func (in *incoming) next(ctx context.Context) (*[]byte, error) {
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
		return nil, status.Errorf(codes.InvalidArgument, "%s: a message has %d bytes, expected at most %d", in.what, size, in.limit)
	}
	// While it waits for memory it is not the client that is slow.
	in.place.arrived()
	in.granting.Store(true)
	err := in.place.grant(ctx, in.what, int(size), in.patience)
	in.granting.Store(false)
	if err != nil {
		return nil, err
	}
	in.place.conn.caller.useful(len(in.head) + int(size))
	buffer := buffers.Get(int(size))
	in.place.await(time.Now())
	err = in.stream.ReadMessageHeader(*buffer)
	in.place.arrived()
	if err != nil {
		buffers.Put(buffer)
		return nil, in.broken(ctx, err)
	}
	return buffer, nil
}

// done lets go of a message and of its memory.
func (in *incoming) done(wire *[]byte) {
	buffers.Put(wire)
	in.place.release()
}

// only returns the only message of a call.
func (in *incoming) only(ctx context.Context) (*[]byte, error) {
	in.place.await(time.Now())
	buffer, err := in.next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, status.Errorf(codes.InvalidArgument, "%s: there is no request, expected one message", in.what)
	}
	if err != nil {
		return nil, err
	}
	in.place.await(time.Now())
	err = in.stream.ReadMessageHeader(in.head[:])
	in.place.arrived()
	switch {
	case errors.Is(err, io.EOF):
		return buffer, nil
	case err == nil:
		err = status.Errorf(codes.InvalidArgument, "%s: there is more than one request, expected one message", in.what)
	default:
		err = in.broken(ctx, err)
	}
	buffers.Put(buffer)
	return nil, err
}

// broken is the error of a message that did not come as a whole.
func (in *incoming) broken(ctx context.Context, err error) error {
	switch _, known := status.FromError(err); {
	case ctx.Err() != nil:
		in.place.conn.caller.strain()
		return status.FromContextError(ctx.Err()).Err()
	case known:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return status.Errorf(codes.InvalidArgument, "%s: a message ends before its length", in.what)
	}
	return status.Errorf(codes.Unavailable, "%s: the connection ended before a message did", in.what)
}
