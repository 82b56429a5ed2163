// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// A client that breaks HTTP/2 would take more memory than its calls are counted for.
func TestAClientThatSendsMoreOfACallThanItMayIsRefused(t *testing.T) {
	b := startWith(t, cipherProfiles, nil, server.WithMemory(4<<20))
	h := byHand(t, b.socket(""), settings{})
	const size = 1900 << 10
	first := h.open(methodHashData)
	h.data(first, head(size), false)
	h.await("leave to send the first message", func() bool { return h.updates[first] >= size-callWindow })
	second := h.open(methodHashData)
	h.data(second, head(size), false)
	awaitMetrics(t, b, "crypto_broker_requests_in_flight 2")
	h.data(second, make([]byte, callWindow+20_000), false)
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		if !strings.Contains(b.metricsText(t), "crypto_broker_requests_in_flight 2\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the call goes on")
		}
	}
}

// The start is kept for as long as the stream lasts.
func TestTheStartOfAStreamOfChunksHasTheLimitsOfRequests(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	_, err := hashStream(t, conn, startOf(manyFields(message{}.text(requestProfile, "P"), 257)), chunk("abc"))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("more than 256 fields: got %v, want InvalidArgument", err)
	}
}
