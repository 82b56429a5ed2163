// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

const (
	// flowControlWindow is the size of windows in bytes. With fixed windows, gRPC sends no
	// pings to estimate the best size.
	flowControlWindow = 1 << 20
	// maxReply is the size in bytes of the largest message that the client reads. A broker
	// sends messages of up to 4 MiB.
	maxReply = 8 << 20
	// connectTime is how long a new connection may take until the broker has answered.
	connectTime = 5 * time.Second
	// pingAfter and pingTimeout bound how long calls wait for a broker that does not run any
	// more. A broker that runs may read nothing of a connection for a minute, while other
	// clients use all memory of its caller.
	pingAfter, pingTimeout = 20 * time.Second, 70 * time.Second
)

func (c *Client) dial() (*grpc.ClientConn, error) {
	socket := c.socket
	conn, err := grpc.NewClient("passthrough:///crypto-broker",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, err
			}
			return connection{conn, c.connections.Add(1)}, nil
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxWait},
			MinConnectTimeout: connectTime,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithStaticStreamWindowSize(flowControlWindow),
		grpc.WithStaticConnWindowSize(flowControlWindow),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("crypto-broker-go"),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wireCodec{}), grpc.MaxCallRecvMsgSize(maxReply)),
	)
	if err != nil {
		return nil, fmt.Errorf("crypto broker: %w", err)
	}
	return conn, nil
}

// connection is a connection with a number. Its remote address is the number, because gRPC
// returns only the address of the connection of a stream.
type connection struct {
	net.Conn
	number uint64
}

// RemoteAddr implements net.Conn.
func (c connection) RemoteAddr() net.Addr { return connectionAddr(c.number) }

type connectionAddr uint64

func (connectionAddr) Network() string  { return "unix" }
func (a connectionAddr) String() string { return "connection " + strconv.FormatUint(uint64(a), 10) }

// connectionOf returns the number of the connection of a stream. ctx is the context of the
// stream.
func connectionOf(ctx context.Context) uint64 {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(connectionAddr); ok {
			return uint64(a)
		}
	}
	return 0
}

// unary makes the call as a unary call of gRPC.
func (c *Client) unary(ctx context.Context, p *call) failure {
	if p.shared == nil {
		p.shared = mem.NewBuffer(p.request, buffers)
	}
	p.received.free()
	if err := c.conn.Invoke(ctx, p.op.method, &outgoing{buffer: p.shared}, &p.received); err != nil {
		return c.failed(ctx, p.op, p.profile, err)
	}
	p.reply = p.received.buffer.ReadOnlyData()
	return failure{}
}

// failed returns the failure of a call of gRPC.
func (c *Client) failed(ctx context.Context, op *operation, profile string, err error) failure {
	st := status.Convert(err)
	code := Code(st.Code())
	switch {
	case c.stopped() && (code == CodeCanceled || code == CodeUnavailable):
		return failure{code: CodeCanceled, message: said(op, profile, "the client was closed"), cause: ErrClosed}
	case ctx.Err() != nil && (code == CodeCanceled || code == CodeDeadlineExceeded):
		return ended(op, profile, ctx.Err())
	case code == CodeDeadlineExceeded && hasDeadline(ctx):
		// gRPC or the broker may see that the deadline has passed before ctx ends.
		return ended(op, profile, context.DeadlineExceeded)
	}
	return c.refused(op, profile, code, st.Message())
}

// refused returns the failure of a status from gRPC or from the broker. Sentences of a broker
// begin with the operation. To other sentences, refused adds the operation and the socket.
func (c *Client) refused(op *operation, profile string, code Code, message string) failure {
	if !strings.HasPrefix(message, op.name) {
		message = said(op, profile, "%s (socket %s)", message, c.socket)
	}
	result := failure{code: code, message: message}
	if code == CodeDeadlineExceeded {
		result.cause = context.DeadlineExceeded
	}
	return result
}

func hasDeadline(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

// isUnimplemented reports whether the broker does not have a method.
func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
