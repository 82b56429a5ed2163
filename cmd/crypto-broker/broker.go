// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

const (
	// defaultTimeout is how long released clients wait for a broker to start.
	defaultTimeout = 60 * time.Second
	// quietTime is how long a call may take before a line on standard error says what
	// it waits for.
	quietTime = 2 * time.Second
	// maxReply is the size in bytes of the largest message that is read. No message of
	// a broker is larger.
	maxReply = 8 << 20
)

// Service configurations of gRPC. Both make it wait for a socket that does not exist
// yet. waitAndRetry makes it also retry calls that ended with one of these codes. The
// deadline of the call ends both; the number of attempts is more than fit into it.
const (
	waitOnly     = `{"methodConfig": [{"name": [{}], "waitForReady": true}]}`
	waitAndRetry = `{"methodConfig": [{"name": [{}], "waitForReady": true, "retryPolicy": {
	"maxAttempts": 1000, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"]}}]}`
)

// retryable reports whether another attempt at a call may succeed, as waitAndRetry does.
func retryable(code codes.Code) bool {
	return code == codes.Unavailable || code == codes.ResourceExhausted || code == codes.Aborted
}

// broker is the broker that a command calls.
type broker struct {
	socket  string
	timeout time.Duration
	stderr  io.Writer
	conn    *grpc.ClientConn
	// patience is for calls that send their input in parts: it runs while the broker
	// reads none of the input, and then ends the call. Other calls have a deadline, and
	// for them it is nil.
	patience *time.Timer
	lasting  bool // whether there is one
	// retries is whether the command retries calls, and gRPC does not.
	retries bool
	// unreachable is the error of the last attempt to connect, nil after a success.
	unreachable atomic.Pointer[error]
}

// brokerFlags gives a command the flags that say which broker it calls.
func brokerFlags(cmd *cobra.Command) *broker {
	b := &broker{}
	socket := cmp.Or(os.Getenv(contract.SocketVariable), filepath.Join(contract.SocketDir, contract.SocketFile))
	cmd.Flags().StringVar(&b.socket, "socket", socket, "path of the broker's socket (environment variable "+contract.SocketVariable+")")
	cmd.Flags().DurationVar(&b.timeout, "timeout", defaultTimeout, "how long a call may take, and the wait for the socket before it")
	return b
}

// open opens the connection. The first call waits until it is there.
func (b *broker) open(cmd *cobra.Command) error {
	if b.timeout <= 0 {
		return program.Usagef("--timeout is %s, expected more than 0", b.timeout)
	}
	b.stderr = &inTurn{to: cmd.ErrOrStderr()}
	config := waitAndRetry
	if b.retries {
		config = waitOnly
	}
	conn, err := grpc.NewClient("passthrough:///crypto-broker",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "unix", b.socket)
			if err != nil {
				b.unreachable.Store(&err)
				return nil, err
			}
			b.unreachable.Store(nil)
			return conn, nil
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultServiceConfig(config),
		grpc.WithMaxCallAttempts(1000),
		grpc.WithUserAgent("crypto-broker"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
	)
	if err != nil {
		return fmt.Errorf("the socket %s cannot be used: %w", b.socket, err)
	}
	b.conn = conn
	return nil
}

// close ends the connection. Its error has no meaning, because the replies are here.
func (b *broker) close() { _ = b.conn.Close() }

// call makes a call, and prints what it waits for if that takes long.
func (b *broker) call(ctx context.Context, do func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- b.callQuietly(ctx, do) }()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-quiet.C:
			what := fmt.Sprintf("waiting for the answer of the broker at %s, at most %s", b.socket, b.timeout)
			if b.lasting {
				what = "sending the input to the broker at " + b.socket
			}
			fmt.Fprintln(b.stderr, b.orWaiting(what))
		}
	}
}

// orWaiting returns a line of progress, or that there is no connection yet.
func (b *broker) orWaiting(progress string) string {
	if b.conn.GetState() != connectivity.Ready {
		return fmt.Sprintf("waiting for a broker at %s, at most %s", b.socket, b.timeout)
	}
	return progress
}

// callQuietly makes a call.
func (b *broker) callQuietly(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	err := do(ctx)
	if errors.Is(context.Cause(ctx), errImpatient) && err != nil {
		err = status.Error(codes.DeadlineExceeded, errImpatient.Error())
	}
	return b.failed(err)
}

// errImpatient ends a call if the broker stops reading its input.
var errImpatient = errors.New("it read nothing of the input meanwhile")

// bounded returns the context of a call. It ends when the call takes longer than
// --timeout. If the call sends its input in parts, it ends when the broker reads
// nothing of the input for so long.
func (b *broker) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if !b.lasting {
		return context.WithTimeout(ctx, b.timeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.patience = time.AfterFunc(b.timeout, func() { cancel(errImpatient) })
	return ctx, func() {
		b.patience.Stop()
		cancel(nil)
	}
}

// failure is a call that failed.
type failure struct {
	exit    int
	code    codes.Code
	message string
}

// Error implements error.
func (f *failure) Error() string { return f.message }

// failed returns the failure for an error of gRPC. Messages of a broker name the
// operation, the profile and the field; for other messages, failed adds the socket.
func (b *broker) failed(err error) error {
	st, isStatus := status.FromError(err)
	switch {
	case err == nil:
		return nil
	case !isStatus && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return err // from reading the input file
	case !isStatus:
		st = status.FromContextError(err)
	}
	f := &failure{exit: program.ExitFailed, code: st.Code(), message: st.Message()}
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.FailedPrecondition:
		f.exit = exitRefused
	case codes.Unimplemented:
		f.exit = exitRefused
		f.message = fmt.Sprintf("the broker at %s does not offer this: %s", b.socket, st.Message())
	case codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		f.exit = exitUnavailable
		f.message = fmt.Sprintf("the broker at %s did not answer within %s: %s", b.socket, b.timeout, st.Message())
		if err := b.unreachable.Load(); err != nil {
			f.message = fmt.Sprintf("there is no broker at %s, waited %s: %v", b.socket, b.timeout, *err)
		}
	case codes.Canceled:
		f.message = "interrupted"
	default:
		f.message = fmt.Sprintf("the broker at %s: %s", b.socket, st.Message())
	}
	return f
}
