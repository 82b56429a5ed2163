// SPDX-License-Identifier: Apache-2.0

package framed

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// streamMethod is the only method of [NewStreamServer].
const streamMethod = "/framed/Stream"

// NewStreamServer returns a gRPC server that serves what [ServeMultiplexed] serves, over a
// stream of gRPC instead of a socket: each write is one message. So the difference between
// the two is what gRPC and HTTP/2 cost.
func NewStreamServer(service *operations.Operations, options ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(options, grpc.ForceServerCodecV2(bytesCodec{}))...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "framed",
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			serveMultiplexed(&streamConn{stream: stream}, service)
			return nil
		}}},
	}, nil)
	return server
}

// DialStream returns clients for a number of callers, which share one stream to
// [NewStreamServer]. conn is closed with them.
func DialStream(conn *grpc.ClientConn, callers int) ([]*Client, func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, streamMethod, grpc.ForceCodecV2(bytesCodec{}))
	if err != nil {
		cancel()
		return nil, nil, err
	}
	clients, end := share(&streamConn{stream: stream, close: func() error { cancel(); return conn.Close() }}, callers)
	return clients, end, nil
}

// streamConn is a stream as a connection. It has only the methods that are used here.
type streamConn struct {
	net.Conn
	stream interface {
		SendMsg(message any) error
		RecvMsg(message any) error
	}
	received mem.Buffer // nil if Read has returned all of it
	close    func() error
}

// Write implements net.Conn.
func (c *streamConn) Write(b []byte) (int, error) {
	// gRPC writes the message later.
	if err := c.stream.SendMsg(mem.Copy(b, mem.DefaultBufferPool())); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read implements net.Conn.
func (c *streamConn) Read(into []byte) (n int, err error) {
	for c.received == nil || c.received.Len() == 0 {
		if err := c.stream.RecvMsg(&c.received); err != nil {
			return 0, err
		}
	}
	n, c.received = mem.ReadUnsafe(into, c.received)
	return n, nil
}

// Close implements net.Conn. On the side of the server it does nothing: the stream ends when
// its handler returns.
func (c *streamConn) Close() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

// bytesCodec is a codec for messages that are bytes.
type bytesCodec struct{}

// Name implements encoding.CodecV2.
func (bytesCodec) Name() string { return "bytes" }

// Marshal implements encoding.CodecV2.
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	buffer, ok := v.(mem.Buffer)
	if !ok {
		return nil, fmt.Errorf("a message is a %T, expected a buffer", v)
	}
	return mem.BufferSlice{buffer}, nil
}

// Unmarshal implements encoding.CodecV2.
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(*mem.Buffer)
	if !ok {
		return fmt.Errorf("a message is read into a %T, expected a *mem.Buffer", v)
	}
	*into = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}
