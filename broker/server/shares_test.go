// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// Of two callers that share smallMemory, each has smallCalls and smallStreams.
const (
	smallMemory              = 1 << 20
	smallCalls, smallStreams = 16, 4
)

// takeCalls opens this many calls without sending their messages. It returns a function that ends them.
func takeCalls(t *testing.T, b *broker, conn *grpc.ClientConn, n int) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	refused := make(chan error, n)
	for range n {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, methodHashData, grpc.ForceCodecV2(wire{}))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			var reply []byte
			if err := stream.RecvMsg(&reply); ctx.Err() == nil {
				refused <- err
			}
		}()
	}
	want := "crypto_broker_requests_in_flight " + strconv.Itoa(n) + "\n"
	for deadline := time.Now().Add(waitLimit); !strings.Contains(b.metricsText(t), want); {
		select {
		case err := <-refused:
			t.Fatalf("one of %d calls was not kept: %v", n, err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the broker has not got %d calls", n)
		}
	}
	return cancel
}

func TestCallsBeyondTheShareOfACallerAreRefusedAndAnotherCallerIsServed(t *testing.T) {
	b := startWith(t, sha256Profile, []string{"a", "b"}, server.WithMemory(smallMemory))
	conn := connect(t, b.socket("a"))
	stop := takeCalls(t, b, conn, smallCalls)
	const want = `%s: the container "a" may have at most 16 calls at one time, try again later`
	refuses(t, conn, methodHashData, request(nil), codes.ResourceExhausted, fmt.Sprintf(want, "HashData"))
	refuses(t, connect(t, b.socket("a")), methodHealth, nil, codes.ResourceExhausted, fmt.Sprintf(want, "Check"))
	_, err := hashStream(t, conn, startOf(message{}.text(requestProfile, "P")))
	if got := status.Convert(err); got.Code() != codes.ResourceExhausted || got.Message() != fmt.Sprintf(want, "HashData") {
		t.Errorf("a stream of chunks: %v", err)
	}
	ask(t, connect(t, b.socket("b")), methodHashData, request(nil))
	stop()
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 0")
	ask(t, conn, methodHashData, request(nil))
}

func TestStreamsBeyondTheShareOfACallerAreRefusedAndItsCallsAreServed(t *testing.T) {
	b := startWith(t, sha256Profile, []string{"a", "b"}, server.WithMemory(smallMemory))
	conn := connect(t, b.socket("a"))
	first := exchange(t, conn)
	first.send(hashCall(1, "P", "abc"))
	first.take(1)
	for range smallStreams - 1 {
		watch := openStream(t, conn, methodWatch)
		send(t, watch, nil)
		if _, err := receive(t, watch); err != nil {
			t.Fatal(err)
		}
	}
	for method, name := range map[string]string{methodExchange: "Exchange", methodEncryptStream: "EncryptStream", methodDecryptStream: "DecryptStream", methodWatch: "Watch", methodReflection: "ServerReflectionInfo"} {
		_, err := receive(t, openStream(t, conn, method))
		want := name + `: the container "a" may have at most 4 streams at one time, try again later`
		if got := status.Convert(err); got.Code() != codes.ResourceExhausted || got.Message() != want {
			t.Errorf("got %s %q, want %q", got.Code(), got.Message(), want)
		}
	}
	ask(t, conn, methodHashData, request(nil))
	other := exchange(t, connect(t, b.socket("b")))
	other.send(hashCall(1, "P", "abc"))
	other.take(1)
	first.closeSend()
	if _, err := first.ends(); err != nil {
		t.Error(err)
	}
	again := exchange(t, conn)
	again.send(hashCall(1, "P", "abc"))
	again.take(1)
}

const (
	methodHealth     = "/grpc.health.v1.Health/Check"
	methodWatch      = "/grpc.health.v1.Health/Watch"
	methodReflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

// endings are the ways in which a client can end.
var endings = map[string]func(t *testing.T, b *broker, conn *grpc.ClientConn){
	"a reply": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		ask(t, conn, methodEncrypt, encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 100<<10)))
	},
	"an error": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		if _, err := call(t, conn, methodEncrypt, encryption("P", raw("short"), gcmNonce, strings.Repeat("x", 100<<10))); err == nil {
			t.Error("a key that is too short was taken")
		}
	},
	"a defect": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		for _, size := range []int{1, 100 << 10} {
			_, err := call(t, conn, methodHashData, message{}.text(requestProfile, "Broken").text(requestInput, strings.Repeat("x", size)))
			if status.Code(err) != codes.Internal {
				t.Errorf("got %v, want Internal", err)
			}
		}
	},
	"a message that is too long": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		if _, err := call(t, conn, methodHashData, make([]byte, 3<<20)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v, want InvalidArgument", err)
		}
	},
	"a cancel before the message": func(t *testing.T, b *broker, conn *grpc.ClientConn) {
		takeCalls(t, b, conn, smallCalls)()
		awaitMetrics(t, b, "crypto_broker_requests_in_flight 0")
	},
	"a cancel after a part of it": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, methodHashStream, grpc.ForceCodecV2(wire{}))
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, startOf(message{}.text(requestProfile, "Hash")))
		send(t, stream, chunk(strings.Repeat("x", 100<<10)))
	},
	"a deadline": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		for i := range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			var reply []byte
			_ = conn.Invoke(ctx, methodEncrypt, []byte(encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 100<<10))), &reply, grpc.ForceCodecV2(wire{})) // the call may still be in time
			cancel()
		}
	},
	"a connection that is closed with replies that nobody has read": func(t *testing.T, b *broker, _ *grpc.ClientConn) {
		h := byHand(t, b.socket("a"), settings{window: 10})
		for range 4 {
			h.call(methodEncrypt, encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 20<<10)), true)
		}
		// Some calls are refused because the previous connection has not ended yet.
		h.await("a part of each reply, or its status", func() bool { return len(h.received)+len(h.status) >= 4 })
		h.close()
	},
	"a connection that is closed with a message half sent": func(t *testing.T, b *broker, _ *grpc.ClientConn) {
		h := byHand(t, b.socket("a"), settings{})
		stream := h.open(methodHashData)
		h.data(stream, append(head(100<<10), make([]byte, 100)...), false)
		h.close()
	},
	"a stream with calls": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		e := exchange(t, conn)
		for id := range uint64(4) {
			e.send(hashCall(id, "Hash", strings.Repeat("x", 30<<10)))
		}
		e.take(4)
		e.closeSend()
		if _, err := e.ends(); err != nil {
			t.Error(err)
		}
	},
	"a stream that is given up with calls": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, methodExchange, grpc.ForceCodecV2(wire{}))
		if err != nil {
			t.Fatal(err)
		}
		for id := range uint64(4) {
			send(t, stream, hashCall(id, "Hash", strings.Repeat("x", 30<<10)))
		}
	},
	"a stream whose message cannot be read": func(t *testing.T, _ *broker, conn *grpc.ClientConn) {
		e := exchange(t, conn)
		e.send(hashCall(1, "Hash", strings.Repeat("x", 30<<10)), message{0xff})
		if _, err := e.ends(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v, want InvalidArgument", err)
		}
	},
}

// awaitReady waits until the broker has accepted a connection. The broker refuses connections while
// all that the caller may have are busy, and gRPC then tries again.
func awaitReady(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		conn.Connect()
		if !conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection is still %s", state)
		}
	}
}

// The share of a caller is small, so that even a small leak makes calls fail.
func TestACallerHasItsWholeShareAgainWhateverEndsItsCalls(t *testing.T) {
	for sentence, end := range endings {
		t.Run(sentence, func(t *testing.T) {
			b := startWith(t, cipherProfiles, []string{"a", "b"}, server.WithMemory(smallMemory))
			b.Sabotage("Broken")
			conn := connect(t, b.socket("a"))
			for range 2 * smallCalls {
				end(t, b, conn)
			}
			// The broker accepts this connection after all earlier ones. Only a connection that has
			// ended has no calls that the broker still has to read.
			awaitReady(t, conn)
			awaitMetrics(t, b, `crypto_broker_connections{container="a"} 1`, "crypto_broker_requests_in_flight 0")
			awaitStreams(t, 0)
			// A message of this size takes all memory that the caller may have.
			ask(t, conn, methodEncrypt, encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", smallMemory/2)))
			takeCalls(t, b, conn, smallCalls)
		})
	}
}
