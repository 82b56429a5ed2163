// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// oneAtATime is the memory in bytes that lets one large request in.
const oneAtATime = 3 << 20

// largeRequest takes all of it, whatever its reply keeps.
func largeRequest() message {
	return largeEncryption().bytes(100, make([]byte, 600<<10))
}

// largeEncryption has a reply as large as they may be.
func largeEncryption() message {
	return encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 1<<20))
}

// openCall begins a unary call. The test finishes the call or leaves it open.
func openCall(t *testing.T, conn *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(wire{}))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// slow are clients that keep the memory for a request or a reply.
var slow = map[string]func(*testing.T, *grpc.ClientConn){
	"a request that never ends": func(t *testing.T, conn *grpc.ClientConn) {
		stream := openCall(t, conn, methodEncrypt)
		if err := stream.SendMsg([]byte(largeRequest())); err != nil { // the data ends, but not the stream
			t.Error(err)
		}
	},
	"a reply that nobody reads": func(t *testing.T, conn *grpc.ClientConn) {
		stream := openCall(t, conn, methodEncrypt)
		if err := stream.SendMsg([]byte(largeEncryption())); err != nil {
			t.Error(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Header(); err != nil { // the reply is on its way
			t.Error(err)
		}
	},
}

// A small call at the same time needs no extra memory, and never waits.
func TestALargeCallWaitsForMemoryUntilItsDeadline(t *testing.T) {
	for sentence, hold := range slow {
		t.Run(sentence, func(t *testing.T) {
			b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime))
			hold(t, connect(t, b.socket("")))
			conn := connect(t, b.socket(""))
			const want = "EncryptData: no memory for the message before the deadline of the call: other messages use the 3145728 bytes of the clients of this socket"
			for deadline := time.Now().Add(waitLimit); ; {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				var reply []byte
				err := conn.Invoke(ctx, methodEncrypt, []byte(largeRequest()), &reply, grpc.ForceCodecV2(wire{}))
				cancel()
				switch status.Code(err) {
				case codes.OK: // the slow one has not got so far
				case codes.DeadlineExceeded:
					// The gRPC library of either side may detect that.
					if got := status.Convert(err).Message(); got != want && !strings.Contains(got, "context deadline exceeded") && !strings.Contains(got, "RST_STREAM") {
						t.Errorf("got %q, want %q", got, want)
					}
					ask(t, conn, methodHashData, message{}.text(requestProfile, "Hash").text(requestInput, "abc"))
					return
				default:
					t.Fatal(err)
				}
				if time.Now().After(deadline) {
					t.Fatal("no call had to wait")
				}
			}
		})
	}
}

func TestAClientThatKeepsTheMemoryLosesItsConnection(t *testing.T) {
	for sentence, hold := range slow {
		t.Run(sentence, func(t *testing.T) {
			b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime), server.WithIdleTime(500*time.Millisecond))
			hold(t, connect(t, b.socket("")))
			conn := connect(t, b.socket(""))
			for served, deadline := 0, time.Now().Add(waitLimit); served < 3; {
				_, err := call(t, conn, methodEncrypt, largeEncryption())
				switch {
				case err == nil:
					served++
				case status.Code(err) != codes.ResourceExhausted: // which a client gets that should try again
					t.Fatal(err)
				case time.Now().After(deadline):
					t.Fatalf("the memory is never free: %v", err)
				}
			}
		})
	}
}

// If any memory were not given back, there would be no room for the last call.
func TestAllMemoryIsGivenBackHoweverCallsEnd(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime))
	var all sync.WaitGroup
	for i := range 64 {
		conn := connect(t, b.socket(""))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			defer cancel()
			request := largeEncryption()
			switch i % 4 {
			case 0:
				request = encryption("P", raw("short"), gcmNonce, strings.Repeat("x", 1<<20))
			case 1:
				request = message("no message")
			case 2:
				request = encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 3<<20))
			}
			var reply []byte
			err := conn.Invoke(ctx, methodEncrypt, []byte(request), &reply, grpc.ForceCodecV2(wire{}))
			switch status.Code(err) {
			case codes.OK, codes.DeadlineExceeded, codes.InvalidArgument:
			default:
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	all.Wait()
	ask(t, connect(t, b.socket("")), methodEncrypt, largeEncryption())
}

// With room for one request at a time, nearly all of them wait.
func TestManyConnectionsWithLargeCallsAllGetTheirTurn(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(oneAtATime))
	var all sync.WaitGroup
	for range 32 {
		conn := connect(t, b.socket(""))
		for range 2 {
			all.Go(func() {
				reply, err := call(t, conn, methodEncrypt, largeEncryption())
				if err != nil || len(reply) < 1<<20 {
					t.Errorf("got %d bytes and %v", len(reply), err)
				}
			})
		}
	}
	all.Wait()
}
