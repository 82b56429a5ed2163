// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// manyFields appends unknown fields.
func manyFields(m message, n int) message {
	for range n {
		m = m.number(100, 1)
	}
	return m
}

func TestARequestHasSoManyFieldsAndNoMore(t *testing.T) {
	b := start(t, exchangeProfiles)
	conn := connect(t, b.socket(""))
	const most = 256
	hash := message{}.text(requestProfile, "P").text(requestInput, "abc")
	ask(t, conn, methodHashData, manyFields(hash, most-2))
	ask(t, conn, methodHealth, manyFields(nil, most))
	const want = "%s: the request is not a %s: it has more than 256 fields"
	refuses(t, conn, methodHashData, manyFields(hash, most-1), codes.InvalidArgument, fmt.Sprintf(want, "HashData", "CryptoBroker.HashDataRequest"))
	refuses(t, conn, methodHashDataV1, manyFields(hash, most-1), codes.InvalidArgument, fmt.Sprintf(want, "HashData", "cryptobroker.v1.HashDataRequest"))
	refuses(t, conn, methodHealth, manyFields(nil, most+1), codes.InvalidArgument, fmt.Sprintf(want, "Check", "grpc.health.v1.HealthCheckRequest"))
	e := exchange(t, conn)
	e.send(callOf(1, theHash, manyFields(hash, most-1)), callOf(2, theHash, hash))
	got := e.take(2)
	if a := got[1]; a.code() != codes.InvalidArgument || a.values[theText] != fmt.Sprintf(want, "HashData", "cryptobroker.v1.HashDataRequest") {
		t.Errorf("over a stream: %v", a)
	}
	if got[2].code() != codes.OK {
		t.Errorf("a call beside it: %v", got[2])
	}
	watch := openStream(t, conn, methodWatch)
	send(t, watch, manyFields(nil, most+1))
	if _, err := receive(t, watch); status.Code(err) != codes.InvalidArgument {
		t.Errorf("Watch: got %v, want InvalidArgument", err)
	}
}

func TestFieldsOfMessagesInARequestAreCounted(t *testing.T) {
	conn := connect(t, start(t, exchangeProfiles).socket(""))
	keys := message{}
	for range 256 {
		keys = keys.bytes(2, nil)
	}
	sign := message{}.text(signProfile, "Own").text(signInput, "abc").bytes(signKey, keys)
	_, err := call(t, conn, methodSignV1, sign)
	if got := status.Convert(err); got.Code() != codes.InvalidArgument || !strings.Contains(got.Message(), "it has more than 256 fields") {
		t.Errorf("got %v", err)
	}
}

func TestGroupsInGroupsAreRefused(t *testing.T) {
	b := start(t, exchangeProfiles)
	conn := connect(t, b.socket(""))
	const depth = 100_000
	var groups message
	for range depth {
		groups = protowire.AppendTag(groups, 100, protowire.StartGroupType)
	}
	for range depth {
		groups = protowire.AppendTag(groups, 100, protowire.EndGroupType)
	}
	for _, method := range []string{methodHashData, methodHashDataV1, methodSignV1} {
		if _, err := call(t, conn, method, append(message{}.text(1, "P"), groups...)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v, want InvalidArgument", method, err)
		}
	}
}

func TestMessagesThatAreCompressedAreRefused(t *testing.T) {
	b := startWith(t, sha256Profile, nil, server.WithMemory(4<<20))
	h := byHand(t, b.socket(""), settings{})
	for _, method := range []string{methodHash, methodHashData, methodHashDataV1, methodHashStream, methodEncryptStream, methodDecryptStream, methodExchange, methodHealth, methodWatch, methodReflection} {
		for sentence, send := range map[string]func() uint32{
			"by its headers": func() uint32 {
				stream := h.open(method, hpack.HeaderField{Name: "grpc-encoding", Value: "gzip"})
				h.data(stream, append([]byte{1, 0, 0, 0, 20}, make([]byte, 20)...), true)
				return stream
			},
			"by its first byte": func() uint32 {
				stream := h.open(method)
				h.data(stream, append([]byte{1, 0, 0, 0, 20}, make([]byte, 20)...), true)
				return stream
			},
		} {
			stream := send()
			h.await("a status", func() bool { return h.status[stream] != "" })
			h.mu.Lock()
			if got := h.status[stream]; got != "12" { // UNIMPLEMENTED
				t.Errorf("%s, compressed %s: got the code %s, want 12", method, sentence, got)
			}
			h.mu.Unlock()
		}
	}
	ask(t, connect(t, b.socket("")), methodHashData, request(nil))
}

func TestMessagesAboveTheirLimitAreRefusedByTheirLength(t *testing.T) {
	b := startWith(t, sha256Profile, nil, server.WithMemory(4<<20))
	h := byHand(t, b.socket(""), settings{})
	for method, most := range map[string]int{
		methodHash: 2 << 20, methodHashDataV1: 2 << 20, methodHashStream: 2 << 20, methodExchange: 4 << 20,
		methodEncryptStream: 72 << 10, methodDecryptStream: 72 << 10,
		methodHealth: 64 << 10, methodWatch: 64 << 10, methodReflection: 64 << 10,
		"/cryptobroker.policy.v1.PolicyService/ListProfiles": 64 << 10,
	} {
		stream := h.open(method)
		h.data(stream, head(most+1), false)
		h.await("a status", func() bool { return h.status[stream] != "" })
		h.mu.Lock()
		if got := h.status[stream]; got != "3" { // INVALID_ARGUMENT
			t.Errorf("%s: got the code %s, want 3", method, got)
		}
		h.mu.Unlock()
	}
}
