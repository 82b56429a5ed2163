// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// callWindow is the number of bytes of a call that a client may send before its message has memory.
const callWindow = 24 << 10

// wideWindow is the same number on the first two connections of a caller.
const wideWindow = 64 << 10

func TestAClientMaySendSoMuchOfACallAndNoMoreBeforeItsMessageHasMemory(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(4<<20))
	for n := range 2 {
		h := byHand(t, b.socket(""), settings{})
		h.await("the settings of the broker", func() bool { return h.window != 0 })
		if h.window != wideWindow {
			t.Errorf("connection %d: a client may send %d bytes in advance, want %d", n, h.window, wideWindow)
		}
	}
	h := byHand(t, b.socket(""), settings{})
	h.await("the settings of the broker", func() bool { return h.window != 0 })
	if h.window != callWindow {
		t.Errorf("a client may send %d bytes in advance, want %d", h.window, callWindow)
	}
	// The first message takes all memory, and the second one waits for it.
	const size = 1900 << 10
	first := h.open(methodHashData)
	h.data(first, head(size), false)
	h.await("leave to send the first message", func() bool { return h.updates[first] >= size-callWindow })
	second := h.open(methodHashData)
	h.data(second, append(head(size), make([]byte, callWindow-5)...), false)
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 2")
	h.ping()
	h.mu.Lock()
	if more := h.updates[second]; more > 5 {
		t.Errorf("the client may send %d bytes more before its message has memory", more)
	}
	h.mu.Unlock()
	h.data(first, make([]byte, size), true) // the bytes are not a valid request, so the first call ends
	h.await("leave to send the second message", func() bool { return h.updates[second] >= size-callWindow })
	h.data(second, make([]byte, size-callWindow+5), true)
	h.await("the end of both calls", func() bool { return len(h.status) == 2 })
}

// clients write in pieces of their own.
var clients = map[string][]grpc.DialOption{
	"of gRPC":                   nil,
	"with small write buffers":  {grpc.WithWriteBufferSize(100), grpc.WithReadBufferSize(100)},
	"without any write buffers": {grpc.WithWriteBufferSize(0)},
	"with large windows":        {grpc.WithInitialWindowSize(1 << 20), grpc.WithInitialConnWindowSize(4 << 20)},
}

// hashOf checks that the broker hashes an input of this many bytes.
func hashOf(t *testing.T, conn *grpc.ClientConn, size int) {
	t.Helper()
	input := strings.Repeat("x", size)
	want := sha256.Sum256([]byte(input))
	got := ask(t, conn, methodHashData, message{}.text(requestProfile, "P").text(requestInput, input))
	if got[4] != hex.EncodeToString(want[:]) {
		t.Errorf("%d bytes: another digest", size)
	}
}

func TestMessagesOfEverySizeComeThrough(t *testing.T) {
	b := startWith(t, sha256Profile, nil, server.WithMemory(4<<20))
	for sentence, options := range clients {
		t.Run(sentence, func(t *testing.T) {
			conn, err := grpc.NewClient("unix://"+b.socket(""), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}()
			for kib := range 71 {
				hashOf(t, conn, kib<<10)
			}
			for _, edge := range []int{8 << 10, 16 << 10, callWindow, 32 << 10, 40 << 10, 48 << 10, 64 << 10, 1<<20 - 50} {
				for _, size := range []int{edge - 40, edge - 20, edge - 15, edge - 10, edge - 5, edge - 1, edge + 1} {
					hashOf(t, conn, size)
				}
			}
			hashOf(t, conn, 1<<20)
			e := exchange(t, conn)
			for id, size := range []int{1, 8 << 10, 16 << 10, callWindow - 40, callWindow, 64 << 10, 1 << 20} {
				e.send(hashCall(uint64(id), "P", strings.Repeat("x", size)))
				if a := e.take(1)[uint64(id)]; a.number != theHash {
					t.Errorf("%d bytes by a stream: %v", size, a)
				}
			}
			// As large as a message of a stream may be.
			metadata := message{}.text(20, strings.Repeat("y", 900<<10))
			e.send(
				hashCall(1, "P", strings.Repeat("x", 1<<20)), hashCall(2, "P", strings.Repeat("x", 1<<20)),
				callOf(3, theHash, request(metadata)), callOf(4, theHash, request(metadata)),
			)
			for id, a := range e.take(4) {
				if a.number != theHash {
					t.Errorf("call %d: %v", id, a)
				}
			}
			e.closeSend()
			if _, err := e.ends(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheLargestRequestOfAnOperationComesThrough(t *testing.T) {
	conn := connect(t, startWith(t, sha256Profile, nil, server.WithMemory(4<<20)).socket(""))
	const largest = 2 << 20
	input, metadata := strings.Repeat("x", 1<<20), 1<<20-100
	build := func(metadata int) message {
		return message{}.text(requestProfile, "P").text(requestInput, input).bytes(requestMetadata, message{}.text(20, strings.Repeat("y", metadata)))
	}
	// An unknown field makes the size exact to the byte.
	whole := func(size int) message {
		m := build(metadata)
		return m.text(100, strings.Repeat("z", size-len(m)-3))
	}
	if got := len(whole(largest)); got != largest {
		t.Fatalf("the request has %d bytes, want %d", got, largest)
	}
	ask(t, conn, methodHashData, whole(largest))
	_, err := call(t, conn, methodHashData, whole(largest+1))
	if want := "HashData: a message has 2097153 bytes, expected at most 2097152"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestMessagesInFramesOfOneByteComeThrough(t *testing.T) {
	b := startWith(t, sha256Profile, nil, server.WithMemory(4<<20))
	h := byHand(t, b.socket(""), settings{})
	for _, size := range []int{0, 1, 9 << 10, 23 << 10} {
		request := message{}.text(requestProfile, "P").text(requestInput, strings.Repeat("x", size))
		stream := h.open(methodHashData)
		whole := append(head(len(request)), request...)
		h.write(func() error {
			for i := range whole {
				if err := h.framer.WriteData(stream, i == len(whole)-1, whole[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		})
		h.await("a status", func() bool { return h.status[stream] != "" })
		h.mu.Lock()
		if got := h.status[stream]; got != "0" {
			t.Errorf("%d bytes: the call ended with the code %s", size, got)
		}
		h.mu.Unlock()
	}
}
