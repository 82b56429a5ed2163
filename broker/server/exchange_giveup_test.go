// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"runtime"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

const requestGivenUp = 2 // ExchangeRequest

// seenGate is a gate that reports each caller who arrives.
type seenGate struct {
	gate
	seen chan struct{}
}

// Key implements keys.Provider.
func (g seenGate) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	g.seen <- struct{}{}
	return g.gate.Key(ctx, name)
}

func TestACallThatWasGivenUpEndsAndTheOthersGoOn(t *testing.T) {
	g := seenGate{newGate(), make(chan struct{}, 100)}
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(g))
	e := exchange(t, connect(t, b.socket("")))
	workers := uint64(runtime.GOMAXPROCS(0)) + 1 // more than there are
	e.send(callOf(0, theSign, gated()))
	<-g.seen // it waits for its key
	for id := range workers - 1 {
		e.send(callOf(1+id, theSign, gated())) // some of these wait for the key, too, and the others for a worker
	}
	e.send(callOf(50, theSign, gated()), callOf(51, theSign, gated()), callOf(52, theSign, gated()))
	packed := protowire.AppendVarint(protowire.AppendVarint(nil, 51), 0)
	e.send(message{}.number(requestGivenUp, 50).number(requestGivenUp, 999).bytes(requestGivenUp, packed))
	// The first call waits for its key and ends at once, so the next calls get their turn. It was canceled last, so its reply shows
	// that the broker has read the other cancellations.
	got := e.take(1)
	if a, ok := got[0]; !ok || a.code() != codes.Canceled || a.values[theText] != `SignData with profile "Ed": the call was canceled before it found the key "ed"` {
		t.Errorf("while it waits for its key: %v", got)
	}
	close(g.open)
	got = e.take(int(workers) + 2)
	for _, id := range []uint64{50, 51} {
		if a := got[id]; a.code() != codes.Canceled || a.values[theText] != "SignData: the client canceled the call before a worker was free" {
			t.Errorf("call %d before its turn: %v", id, a)
		}
	}
	for id, a := range got {
		if id != 50 && id != 51 && a.number != theSign {
			t.Errorf("call %d, which was not given up: %v", id, a)
		}
	}
	e.send(callOf(51, theSign, gated()))
	if a := e.take(1)[51]; a.number != theSign {
		t.Errorf("an id that is free again: %v", a)
	}
	awaitMetrics(t, b,
		`crypto_broker_requests_total{code="Canceled",operation="SignData",profile="Ed"} 1`,
		`crypto_broker_requests_total{code="Canceled",operation="SignData",profile="unknown"} 2`,
		"crypto_broker_requests_in_flight 0")
}

func TestIDsThatCannotBeReadEndTheStream(t *testing.T) {
	e := exchange(t, connect(t, start(t, exchangeProfiles).socket("")))
	e.send(message{}.bytes(requestGivenUp, []byte{0x80}))
	_, err := e.ends()
	const want = "Exchange: a message is not a cryptobroker.stream.v1.ExchangeRequest: unexpected EOF"
	if got := status.Convert(err); got.Code() != codes.InvalidArgument || got.Message() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
