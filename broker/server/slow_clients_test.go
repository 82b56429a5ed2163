// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// shortIdleTime is the idle time in tests that wait for its end.
const shortIdleTime = 300 * time.Millisecond

// goesAway waits until the broker has closed the connection.
func (h *handmade) goesAway() {
	h.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		if gone {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatal("the connection is still there")
		}
	}
}

func TestAClientThatSendsHalfOfARequestLosesItsConnection(t *testing.T) {
	b := startWith(t, exchangeProfiles, nil, server.WithIdleTime(shortIdleTime), server.WithDevelopmentService())
	beside := connect(t, b.socket(""))
	methods := []string{methodHealth, methodWatch, methodReflection, methodExchange}
	for service, names := range b.Methods() {
		for _, name := range names {
			methods = append(methods, "/"+service+"/"+name)
		}
	}
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			h := byHand(t, b.socket(""), settings{})
			h.data(h.open(method), append(head(20_000), make([]byte, 10_000)...), false)
			h.goesAway()
		})
	}
	for _, method := range b.Methods()["cryptobroker.v1.CryptoService"] {
		t.Run(method+", of which only the headers are sent", func(t *testing.T) {
			t.Parallel()
			h := byHand(t, b.socket(""), settings{})
			h.open("/cryptobroker.v1.CryptoService/" + method)
			h.goesAway()
		})
		t.Run(method+", of which the end is not sent", func(t *testing.T) {
			t.Parallel()
			h := byHand(t, b.socket(""), settings{})
			h.call("/cryptobroker.v1.CryptoService/"+method, request(nil), false)
			h.goesAway()
		})
	}
	t.Run("while another client is served", func(t *testing.T) {
		t.Parallel()
		for end := time.Now().Add(3 * shortIdleTime); time.Now().Before(end); {
			ask(t, beside, methodHashDataV1, request(nil))
		}
	})
}

func TestAClientThatDoesNotReadLosesItsConnection(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithIdleTime(shortIdleTime))
	beside := connect(t, b.socket(""))
	request := encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 100<<10))
	t.Run("because it leaves no window for the reply", func(t *testing.T) {
		t.Parallel()
		h := byHand(t, b.socket(""), settings{window: 10})
		h.call(methodEncrypt, request, true)
		h.goesAway()
	})
	t.Run("because it does not read its socket", func(t *testing.T) {
		t.Parallel()
		h := byHand(t, b.socket(""), settings{deaf: true})
		for range 20 { // more than the system buffers
			h.call(methodEncrypt, encryption("P", raw(gcmKey), gcmNonce, strings.Repeat("x", 10<<10)), true)
		}
		// The error differs from a failed write, and from a normal end of the data.
		for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
			h.writing.Lock()
			err := h.framer.WritePing(false, [8]byte{})
			h.writing.Unlock()
			if err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the connection is still there")
			}
		}
		if _, err := io.Copy(io.Discard, h.conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
	})
	t.Run("while another client is served", func(t *testing.T) {
		t.Parallel()
		for end := time.Now().Add(3 * shortIdleTime); time.Now().Before(end); {
			ask(t, beside, methodEncrypt, request)
		}
	})
}

func TestIdleConnectionsAndStreamsMayStay(t *testing.T) {
	// On a busy machine a client may take longer than a short time to read a reply, and loses its connection for that reason.
	for idleTime := 20 * time.Millisecond; !areServedAfter(t, idleTime); idleTime *= 4 {
		if idleTime > 2*time.Second {
			t.Fatal("a connection or a stream that was idle is closed")
		}
	}
}

// areServedAfter reports whether a broker still serves a stream and a connection that were idle for ten times as long as a client
// may take to finish a request.
func areServedAfter(t *testing.T, idleTime time.Duration) bool {
	t.Helper()
	b := startWith(t, exchangeProfiles, nil, server.WithIdleTime(idleTime))
	e := exchange(t, connect(t, b.socket("")))
	h := byHand(t, b.socket(""), settings{})
	served := func(id uint64) bool {
		e.send(hashCall(id, "P", "abc"))
		_, _, err := e.next()
		return err == nil && h.answersPing()
	}
	if !served(1) {
		return false
	}
	<-time.After(10 * idleTime)
	return served(2)
}
