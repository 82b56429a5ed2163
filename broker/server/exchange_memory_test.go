// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// ends are ways to end a stream while calls wait at the gate and its messages have all memory of the broker.
var ends = map[string]func(t *testing.T, b *broker, conn *grpc.ClientConn, g gate){
	"with all replies": func(t *testing.T, _ *broker, conn *grpc.ClientConn, g gate) {
		e := exchange(t, conn)
		e.send(wide(1), wide(2))
		close(g.open)
		for id, a := range e.take(2) {
			if a.code() != codes.OK {
				t.Errorf("call %d: %v", id, a)
			}
		}
		e.closeSend()
		if _, err := e.ends(); err != nil {
			t.Error(err)
		}
	},
	"given up while calls are served": func(t *testing.T, b *broker, conn *grpc.ClientConn, _ gate) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, methodExchange, grpc.ForceCodecV2(wire{}))
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, batch(wide(1), wide(2)))
		awaitMetrics(t, b, "crypto_broker_requests_in_flight 2")
		cancel()
	},
	"with its connection while calls are served": func(t *testing.T, b *broker, _ *grpc.ClientConn, _ gate) {
		h := byHand(t, b.socket("a"), settings{})
		h.call(methodExchange, batch(wide(1), wide(2)), false)
		awaitMetrics(t, b, "crypto_broker_requests_in_flight 2")
		h.close()
	},
	"with its connection before replies are read": func(t *testing.T, b *broker, _ *grpc.ClientConn, g gate) {
		close(g.open)
		h := byHand(t, b.socket("a"), settings{window: 10})
		h.call(methodExchange, batch(wide(1), wide(2)), false)
		h.await("a part of a reply", func() bool { return len(h.received) > 0 })
		awaitMetrics(t, b, `crypto_broker_requests_total{code="OK",operation="SignData",profile="Ed"} 2`)
		h.close()
	},
	"because of a message that cannot be read": func(t *testing.T, b *broker, conn *grpc.ClientConn, g gate) {
		e := exchange(t, conn)
		e.send(wide(1), wide(2), message{0xff})
		awaitMetrics(t, b, "crypto_broker_requests_in_flight 2")
		close(g.open)
		if _, err := e.ends(); err == nil {
			t.Error("the stream ended without an error")
		}
	},
	"with calls that are given up": func(t *testing.T, b *broker, conn *grpc.ClientConn, _ gate) {
		e := exchange(t, conn)
		e.send(wide(1), wide(2))
		awaitMetrics(t, b, "crypto_broker_requests_in_flight 2")
		e.send(message{}.bytes(requestGivenUp, message{1, 2}))
		for id, a := range e.take(2) {
			if a.code() != codes.Canceled {
				t.Errorf("call %d: %v", id, a)
			}
		}
	},
	"half sent": func(t *testing.T, b *broker, _ *grpc.ClientConn, _ gate) {
		h := byHand(t, b.socket("a"), settings{})
		stream := h.open(methodExchange)
		h.data(stream, append(head(smallMemory), make([]byte, 1000)...), false)
		h.await("leave to send the message", func() bool { return h.updates[stream] > 0 })
		h.close()
	},
}

// wide is a call for a signature at the gate, with metadata that its reply repeats.
func wide(id uint64) message {
	return callOf(id, theSign, append(gated(), message{}.bytes(signMetadata, message{}.text(20, strings.Repeat("x", 100<<10)))...))
}

func TestAStreamGivesItsMemoryBackHoweverItEnds(t *testing.T) {
	for sentence, end := range ends {
		t.Run(sentence, func(t *testing.T) {
			g := newGate()
			b := startWith(t, exchangeProfiles, []string{"a", "b"}, server.WithMemory(smallMemory), server.WithKeys(g))
			conn := connect(t, b.socket("a"))
			end(t, b, conn, g)
			awaitMetrics(t, b, "crypto_broker_requests_in_flight 0")
			// This one takes all memory that the caller may have.
			ask(t, conn, methodHashDataV1, message{}.text(requestProfile, "P").text(requestInput, strings.Repeat("x", smallMemory/2)))
			for range 2 * smallStreams {
				e := exchange(t, conn)
				e.send(hashCall(1, "P", "abc"))
				e.take(1)
				e.closeSend()
				if _, err := e.ends(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
