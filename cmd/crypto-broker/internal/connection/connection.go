// SPDX-License-Identifier: Apache-2.0

package connection

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
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
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

// Service configurations of gRPC. Both make it wait for a socket that does not exist yet.
// waitAndRetry makes it also retry calls that ended with one of these codes. The deadline of the
// call ends waiting and retrying, before the number of attempts is reached.
const (
	waitOnly     = `{"methodConfig": [{"name": [{}], "waitForReady": true}]}`
	waitAndRetry = `{"methodConfig": [{"name": [{}], "waitForReady": true, "retryPolicy": {
	"maxAttempts": 1000, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"]}}]}`
)

// Retryable reports whether another attempt at a call may succeed, as waitAndRetry does.
func Retryable(code codes.Code) bool {
	return code == codes.Unavailable || code == codes.ResourceExhausted || code == codes.Aborted
}

// Broker is the broker that a command calls.
type Broker struct {
	Socket  string
	Timeout time.Duration
	// Stderr is the standard error of the command. Several goroutines may write to it.
	Stderr io.Writer
	// Conn is the connection, from Open to Close.
	Conn *grpc.ClientConn
	// InParts reports whether calls send their input in parts. Then Timeout is for each part that
	// the broker reads, and not for the call.
	InParts bool
	// Retries reports whether the command retries calls instead of gRPC.
	Retries bool
	// patience ends a call that sends its input in parts while the broker reads none of
	// the input. Other calls have a deadline, and for them it is nil.
	patience *time.Timer
	// unreachable is the error of the last attempt to connect, or nil after a success.
	unreachable atomic.Pointer[error]
	// refused is the last answer of the broker to an attempt that gRPC has repeated since, or nil.
	refused atomic.Pointer[string]
}

// Flags gives a command the flags that say which broker it calls.
func Flags(cmd *cobra.Command) *Broker {
	b := &Broker{}
	socket := cmp.Or(os.Getenv(contract.SocketVariable), filepath.Join(contract.SocketDir, contract.SocketFile))
	cmd.Flags().StringVar(&b.Socket, "socket", socket, "path of the broker's socket (environment variable "+contract.SocketVariable+")")
	cmd.Flags().DurationVar(&b.Timeout, "timeout", defaultTimeout, "how long a call may take, and the wait for the socket before it")
	return b
}

// Open opens the connection. The first call waits until the connection is ready.
func (b *Broker) Open(cmd *cobra.Command) error {
	if b.Timeout <= 0 {
		return program.Usagef("--timeout is %s, expected more than 0", b.Timeout)
	}
	b.Stderr = &inTurn{to: cmd.ErrOrStderr()}
	config := waitAndRetry
	if b.Retries {
		config = waitOnly
	}
	conn, err := grpc.NewClient("passthrough:///crypto-broker",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "unix", b.Socket)
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
		grpc.WithStatsHandler(attempts{b}),
		grpc.WithUnaryInterceptor(refuseBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
	)
	if err != nil {
		return fmt.Errorf("the socket %s cannot be used: %w", b.Socket, err)
	}
	b.Conn = conn
	return nil
}

// refuseBytes refuses a request that has bytes in a field for text, such as a certificate in DER where
// PEM is expected. gRPC cannot send it, and its error does not name the field.
func refuseBytes(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	field := ""
	request.(proto.Message).ProtoReflect().Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if f.Kind() == protoreflect.StringKind && !f.IsList() && !utf8.ValidString(value.String()) {
			field = f.JSONName()
		}
		return field == ""
	})
	if field != "" {
		return status.Errorf(codes.InvalidArgument, "%s has bytes that are no text in UTF-8, expected text, such as PEM for a key or a certificate", field)
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// attempts keeps the answers of the broker to attempts that gRPC repeats. gRPC itself returns only that the
// time is over.
type attempts struct{ *Broker }

// TagRPC implements stats.Handler.
func (attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (attempts) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC implements stats.Handler.
func (a attempts) HandleRPC(_ context.Context, event stats.RPCStats) {
	end, isEnd := event.(*stats.End)
	if !isEnd {
		return
	}
	switch answer := status.Convert(end.Error); {
	case answer.Code() == codes.OK:
		a.refused.Store(nil)
	case Retryable(answer.Code()) && a.unreachable.Load() == nil:
		message := answer.Message()
		a.refused.Store(&message)
	}
}

// Close ends the connection. Its error does not matter, because all replies have arrived.
func (b *Broker) Close() { _ = b.Conn.Close() }

// Call makes a call. If it takes long, Call prints what it waits for.
func (b *Broker) Call(ctx context.Context, do func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- b.CallQuietly(ctx, do) }()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-quiet.C:
			what := fmt.Sprintf("waiting for the answer of the broker at %s, at most %s", b.Socket, b.Timeout)
			if b.InParts {
				what = "sending the input to the broker at " + b.Socket
			}
			fmt.Fprintln(b.Stderr, b.Progress(what))
		}
	}
}

// Progress returns line, or a sentence that says that there is no connection yet.
func (b *Broker) Progress(line string) string {
	if b.Conn.GetState() != connectivity.Ready {
		return fmt.Sprintf("waiting for a broker at %s, at most %s", b.Socket, b.Timeout)
	}
	return line
}

// CallQuietly makes a call within the timeout. Other than [Broker.Call], it prints nothing while the
// call takes long.
func (b *Broker) CallQuietly(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	err := do(ctx)
	if errors.Is(context.Cause(ctx), errImpatient) && err != nil {
		err = status.Error(codes.DeadlineExceeded, errImpatient.Error())
	}
	return b.Failed(err)
}

// errImpatient ends a call if the broker stops reading its input.
var errImpatient = errors.New("it read no input during this time")

// bounded returns the context of a call. It ends when the call takes longer than --timeout. If
// the call sends its input in parts, it ends when the broker reads nothing of the input for that
// time.
func (b *Broker) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if !b.InParts {
		return context.WithTimeout(ctx, b.Timeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.patience = time.AfterFunc(b.Timeout, func() { cancel(errImpatient) })
	return ctx, func() {
		b.patience.Stop()
		cancel(nil)
	}
}

// Pause stops the timeout of a call that sends its input in parts while the command reads the
// next part, because the timeout is for the broker and not for a slow input. Resume continues it.
func (b *Broker) Pause() { b.patience.Stop() }

// Resume restarts the timeout for the next part.
func (b *Broker) Resume() { b.patience.Reset(b.Timeout) }

// Failure is a call that failed.
type Failure struct {
	// Exit is the exit code of the command.
	Exit    int
	Code    codes.Code
	Message string
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Failed returns the failure for an error of gRPC. Messages of a broker name the operation, the
// profile and the field. To other messages, Failed adds the socket.
func (b *Broker) Failed(err error) error {
	st, isStatus := status.FromError(err)
	switch {
	case err == nil:
		return nil
	case !isStatus && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return err // from reading the input file
	case !isStatus:
		st = status.FromContextError(err)
	}
	f := &Failure{Exit: program.ExitFailed, Code: st.Code(), Message: st.Message()}
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.FailedPrecondition:
		f.Exit = commandline.ExitRefused
	case codes.Unimplemented:
		f.Exit = commandline.ExitRefused
		f.Message = fmt.Sprintf("the broker at %s does not offer this: %s", b.Socket, st.Message())
	case codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		f.Exit = commandline.ExitUnavailable
		f.Message = fmt.Sprintf("the broker at %s did not answer within %s: %s", b.Socket, b.Timeout, st.Message())
		answer, unreachable := b.refused.Load(), b.unreachable.Load()
		switch {
		case unreachable != nil:
			f.Message = fmt.Sprintf("there is no broker at %s, waited %s: %v", b.Socket, b.Timeout, *unreachable)
		case st.Code() != codes.DeadlineExceeded: // a stream, which is not repeated
			f.Message = fmt.Sprintf("the broker at %s did not serve the call: %s", b.Socket, st.Message())
		case answer != nil:
			f.Message = fmt.Sprintf("the broker at %s did not serve the call within %s: %s", b.Socket, b.Timeout, *answer)
		}
	case codes.Canceled:
		f.Message = "interrupted"
	default:
		f.Message = fmt.Sprintf("the broker at %s: %s", b.Socket, st.Message())
	}
	return f
}
