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
	// flowControlWindow is in bytes; a fixed one spares the pings by which gRPC
	// estimates a better one.
	flowControlWindow = 1 << 20
	// maxReply is the size in bytes of the largest message that is read, above all
	// that a broker sends.
	maxReply = 8 << 20
	// connectTime is how long a broker may take to greet.
	connectTime = 5 * time.Second
	// pingAfter and pingTimeout find a broker that has stopped to run while calls
	// wait for it. One whose memory others fill may read nothing of a connection for
	// a minute, which is what it gives them.
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

// connection is one that knows its number. gRPC tells the address of a stream's
// connection, so that the number is that.
type connection struct {
	net.Conn
	number uint64
}

// RemoteAddr implements net.Conn.
func (c connection) RemoteAddr() net.Addr { return connectionAddr(c.number) }

type connectionAddr uint64

func (connectionAddr) Network() string  { return "unix" }
func (a connectionAddr) String() string { return "connection " + strconv.FormatUint(uint64(a), 10) }

// connectionOf is the number of the connection that a stream is on, from its
// context.
func connectionOf(ctx context.Context) uint64 {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(connectionAddr); ok {
			return uint64(a)
		}
	}
	return 0
}

// unary makes the call as one of gRPC.
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

// failed is the failure of a call of gRPC.
func (c *Client) failed(ctx context.Context, op *operation, profile string, err error) failure {
	st := status.Convert(err)
	code := Code(st.Code())
	switch {
	case c.stopped() && (code == CodeCanceled || code == CodeUnavailable):
		return failure{code: CodeCanceled, message: said(op, profile, "the client was closed"), cause: ErrClosed}
	case ctx.Err() != nil && (code == CodeCanceled || code == CodeDeadlineExceeded):
		return ended(op, profile, ctx.Err())
	case code == CodeDeadlineExceeded && hasDeadline(ctx):
		// gRPC and the broker look at clocks of their own.
		return ended(op, profile, context.DeadlineExceeded)
	}
	return c.refused(op, profile, code, st.Message())
}

// refused is the failure that a status of gRPC or of the broker tells. A broker's
// sentences begin with the operation; others lack it, and which socket it was.
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
