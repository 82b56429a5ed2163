// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

func slowCall(id uint64) message {
	return callOf(id, theSign, message{}.text(signProfile, "RSA").bytes(signKey, one(raw(slowKey()))).text(signInput, "abc"))
}

// awaitStreams waits until so many streams of Exchange are served.
func awaitStreams(t testing.TB, want int) {
	t.Helper()
	stacks := make([]byte, 4<<20)
	for deadline := time.Now().Add(waitLimit); ; <-time.After(time.Millisecond) { // because all goroutines stop for the stacks
		found := strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "stream.(*streamService).exchange(")
		if found == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are served, want %d", found, want)
		}
	}
}

func TestShutdownFinishesTheCallsOfAStreamAndSaysSo(t *testing.T) {
	g := newGate()
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(g))
	e := exchange(t, connect(t, b.socket("")))
	const calls = 20
	for id := range uint64(calls) {
		e.send(callOf(id, theSign, gated()))
	}
	// The broker reads them one after the other, so the reply to the last call shows that all have arrived.
	e.send(hashCall(calls, "P", "abc"))
	e.take(1)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.Shutdown(ctx) }()
	for deadline := time.Now().Add(waitLimit); dial(t, b.socket("")) == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the socket still takes connections")
		}
	}
	close(g.open)
	got, err := e.ends()
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want Unavailable", err)
	}
	if len(got) != calls {
		t.Errorf("%d replies, want %d", len(got), calls)
	}
	for id, a := range got {
		if a.number != theSign {
			t.Errorf("call %d: %v", id, a)
		}
	}
	if want := "Exchange: the broker shuts down; calls without a reply were not served and can be made again"; e.goAway != want {
		t.Errorf("the last message says %q, want %q", e.goAway, want)
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestShutdownDoesNotWaitForStreamsWithoutCalls(t *testing.T) {
	b := start(t, sha256Profile)
	e := exchange(t, connect(t, b.socket("")))
	e.send(hashCall(1, "P", "abc"))
	e.take(1)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ends(); status.Code(err) != codes.Unavailable || e.goAway == "" {
		t.Errorf("got %v and %q, want Unavailable and a good-bye", err, e.goAway)
	}
}

func TestAClientMayGiveUpAStreamOfCalls(t *testing.T) {
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(newGate()))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := connect(t, b.socket("")).NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, methodExchange, grpc.ForceCodecV2(wire{}))
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(100) {
		send(t, stream, callOf(id, theSign, gated()))
	}
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 100")
	cancel()
	awaitStreams(t, 0)
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 0")
	if text := b.metricsText(t); !strings.Contains(text, `code="Canceled",operation="SignData"`) || strings.Contains(text, `code="OK",operation="SignData",profile="Ed"} 1`) {
		t.Errorf("not all calls were given up:\n%s", text)
	}
}

func TestAClientThatDoesNotReadIsLetGo(t *testing.T) {
	// On a busy machine the client may take longer than the idle time to send the calls, and loses its connection for that reason.
	for idleTime := 500 * time.Millisecond; ; idleTime *= 4 {
		err := endOfUnreadStream(t, idleTime)
		if status.Code(err) == codes.Unavailable && idleTime < 10*time.Second {
			continue
		}
		want := "Exchange: replies were not read for " + idleTime.String()
		if status.Code(err) != codes.DeadlineExceeded || status.Convert(err).Message() != want {
			t.Errorf("got %v, want DeadlineExceeded with %q", err, want)
		}
		return
	}
}

// endOfUnreadStream sends calls until the broker ends the stream, reads only then, and returns why the stream ended.
func endOfUnreadStream(t *testing.T, idleTime time.Duration) error {
	t.Helper()
	b := startWith(t, exchangeProfiles, nil, server.WithIdleTime(idleTime))
	e := exchange(t, connect(t, b.socket("")))
	e.send(hashCall(0, "P", "abc"))
	if _, _, err := e.next(); err != nil { // after a reply the broker has the stream
		return err
	}
	var calls []message
	for id := range uint64(500) {
		calls = append(calls, callOf(id, theHash, message{}.text(requestProfile, "P").bytes(requestMetadata, message{}.text(20, strings.Repeat("x", 1000)))))
	}
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		for e.stream.SendMsg([]byte(batch(calls...))) == nil { // until the stream ends
		}
	}()
	awaitStreams(t, 0)
	_, err := e.ends()
	<-blocked
	return err
}

func TestAClientThatReadsNoSignaturesIsNotHashedForWithoutEnd(t *testing.T) {
	g := newGate()
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(g), server.WithIdleTime(time.Second))
	e := exchange(t, connect(t, b.socket("")))
	const signatures, enough = 3, 20_000
	for id := range uint64(signatures) {
		// Each reply is larger than the amount of data that may be in flight.
		e.send(callOf(id, theSign, append(gated(), message{}.bytes(signMetadata, message{}.text(20, strings.Repeat("x", 900<<10)))...)))
	}
	e.send(hashCall(signatures, "P", "abc"))
	e.take(1)
	close(g.open)
	awaitMetrics(t, b, `crypto_broker_requests_total{code="OK",operation="SignData",profile="Ed"} 3`)
	sent := 0
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		for sent < enough && e.stream.SendMsg([]byte(hashCall(signatures, "P", "abc"))) == nil {
			sent++
		}
	}()
	awaitStreams(t, 0)
	if _, err := e.ends(); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want that its replies were not read", err)
	}
	if <-blocked; sent == enough {
		t.Errorf("the broker took %d calls behind replies that nobody read, want fewer", sent)
	}
}

func TestLargeCallsOfManyStreamsWaitForEachOther(t *testing.T) {
	const streams, calls, size = 4, 8, 1 << 20
	// Room for two of them at a time.
	b := startWith(t, exchangeProfiles, nil, server.WithMemory(5<<20))
	conn := connect(t, b.socket(""))
	plaintext := strings.Repeat("x", size)
	var all []*exchanger
	sent := make(chan error, streams)
	for range streams {
		e := exchange(t, conn)
		all = append(all, e)
		go func() {
			for id := range uint64(calls) {
				err := e.stream.SendMsg([]byte(callOf(id, theEncrypt, message{}.text(dataProfile, "AES").bytes(dataKey, raw(strings.Repeat("k", 32))).
					text(dataText, plaintext).bytes(dataCipherMetadata, message{}.text(cipherNonce, strings.Repeat("n", 12))))))
				if err != nil {
					sent <- err
					return
				}
			}
			sent <- e.stream.CloseSend()
		}()
	}
	var reading sync.WaitGroup
	for _, e := range all {
		reading.Go(func() {
			got, err := e.ends()
			if err != nil || len(got) != calls {
				t.Errorf("%d replies and %v, want %d", len(got), err, calls)
			}
			for id, a := range got {
				if a.number != theEncrypt || len(a.values[replyCiphertext]) != size {
					t.Errorf("call %d: %s", id, a.code())
				}
			}
		})
	}
	reading.Wait()
	for range streams {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

func TestTheTimeoutOfACallEndsItsWaitForAKey(t *testing.T) {
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(newGate())) // the gate, which stays closed
	e := exchange(t, connect(t, b.socket("")))
	encrypt := message{}.text(dataProfile, "Held AES").bytes(dataKey, byID("ed")).text(dataText, "abc")
	for sentence, call := range map[string]message{
		"served at once": message{}.number(theID, 1).number(theTimeout, 20).bytes(theEncrypt, encrypt),
		"by a worker":    message{}.number(theID, 1).number(theTimeout, 20).bytes(theSign, gated()),
	} {
		e.send(message{}.bytes(requestCalls, call))
		if a := e.take(1)[1]; a.code() != codes.DeadlineExceeded || !strings.HasSuffix(a.values[theText], `the key "ed" was not found before the deadline of the call`) {
			t.Errorf("%s: %v", sentence, a)
		}
	}
}
