// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
)

// The method and the numbers of its fields, written down a second time.
const (
	methodExchange = "/cryptobroker.stream.v1.StreamService/Exchange"

	requestCalls                                                        = 1 // ExchangeRequest
	theID, theTimeout                                                   = 1, 2
	theHash, theCertificate, theEncrypt, theDecrypt, theSign, theVerify = 3, 4, 5, 6, 7, 8 // Call and Reply
	theReplies, theGoAway                                               = 1, 2             // ExchangeResponse
	theStatus                                                           = 2                // Reply
	theCode, theText                                                    = 1, 2             // Status
)

// slowKey is a key that takes milliseconds to sign.
var slowKey = sync.OnceValue(func() string { return keyPEM(must(rsa.GenerateKey(rand.Reader, 4096))) })

// callOf is one call of a batch.
func callOf(id uint64, number protowire.Number, request message) message {
	return message{}.bytes(requestCalls, message{}.number(theID, id).bytes(number, request))
}

func hashCall(id uint64, profile, input string) message {
	return callOf(id, theHash, message{}.text(requestProfile, profile).text(requestInput, input))
}

func batch(calls ...message) message {
	var m message
	for _, c := range calls {
		m = append(m, c...)
	}
	return m
}

// answer is one reply.
type answer struct {
	number protowire.Number
	values values // of the result
}

func (a answer) code() codes.Code {
	if a.number != theStatus {
		return codes.OK
	}
	code, _ := protowire.ConsumeVarint([]byte(a.values[theCode]))
	return codes.Code(code)
}

// exchanger is a stream of Exchange.
type exchanger struct {
	t      testing.TB
	stream grpc.ClientStream
	goAway string
	queue  []message // replies that came with others
}

func exchange(t testing.TB, conn *grpc.ClientConn) *exchanger {
	t.Helper()
	return &exchanger{t: t, stream: openStream(t, conn, methodExchange)}
}

func (e *exchanger) send(calls ...message) {
	e.t.Helper()
	send(e.t, e.stream, batch(calls...))
}

func (e *exchanger) closeSend() {
	e.t.Helper()
	if err := e.stream.CloseSend(); err != nil {
		e.t.Fatal(err)
	}
}

// next returns the next reply, or the error that the stream ended with.
func (e *exchanger) next() (id uint64, a answer, err error) {
	e.t.Helper()
	for len(e.queue) == 0 {
		wire, err := receive(e.t, e.stream)
		if err != nil {
			return 0, answer{}, err
		}
		for len(wire) > 0 {
			number, _, n := protowire.ConsumeTag(wire)
			part, m := protowire.ConsumeBytes(wire[n:])
			if n < 0 || m < 0 {
				e.t.Fatal("the broker sent a message that cannot be read")
			}
			wire = wire[n+m:]
			if number == theGoAway {
				e.goAway = parse(e.t, part)[1]
				continue
			}
			e.queue = append(e.queue, part)
		}
	}
	reply := e.queue[0]
	e.queue = e.queue[1:]
	for len(reply) > 0 {
		number, kind, n := protowire.ConsumeTag(reply)
		reply = reply[n:]
		if number == theID && kind == protowire.VarintType {
			id, n = protowire.ConsumeVarint(reply)
			reply = reply[n:]
			continue
		}
		part, n := protowire.ConsumeBytes(reply)
		reply = reply[n:]
		a = answer{number, parse(e.t, part)}
	}
	return id, a, nil
}

// take receives this many replies.
func (e *exchanger) take(n int) map[uint64]answer {
	e.t.Helper()
	got := map[uint64]answer{}
	for range n {
		id, a, err := e.next()
		if err != nil {
			e.t.Fatalf("after %d of %d replies: %v", len(got), n, err)
		}
		if _, twice := got[id]; twice {
			e.t.Fatalf("two replies for %d", id)
		}
		got[id] = a
	}
	return got
}

// ends reads until the stream ends, and returns the replies and the reason of the end.
func (e *exchanger) ends() (map[uint64]answer, error) {
	e.t.Helper()
	got := map[uint64]answer{}
	for {
		id, a, err := e.next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got[id] = a
	}
}

const exchangeProfiles = sha256Profile + `- Name: Ed
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: ed}]}}
- Name: Own
  API: {SignData: {SignAlg: ed25519}}
- Name: RSA
  API: {SignData: {SignAlg: rsa, HashAlg: sha-256}}
- Name: AES
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided, TagLength: 128}}
- Name: Held AES
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided, TagLength: 128, KeyIds: [{Id: ed}]}}
`

func TestOneMessageMayHaveCallsOfEveryOperation(t *testing.T) {
	b := start(t, exchangeProfiles)
	e := exchange(t, connect(t, b.socket("")))
	key, nonce := strings.Repeat("k", 32), strings.Repeat("n", 12)
	metadata := message{}.text(metadataID, "id").text(99, "later")
	e.send(
		callOf(1, theHash, request(metadata)),
		callOf(1<<63, theEncrypt, message{}.text(dataProfile, "AES").bytes(dataKey, raw(key)).text(dataText, "secret").
			bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce))),
		callOf(3, theSign, message{}.text(signProfile, "Own").bytes(signKey, one(raw(edKeyPEM))).text(signInput, "abc")),
		callOf(4, theCertificate, message{}.text(1, "P")),
		callOf(5, 99, message{}),
		callOf(6, theHash, message{}.text(requestProfile, "nope")),
		message{}.bytes(requestCalls, message{}.number(theID, 7).bytes(theHash, request(nil)).bytes(theHash, request(nil))),
		callOf(8, theHash, message{0xff}),
		callOf(9, theHash, request(message{}.bytes(99, make([]byte, 1<<20)))),
		message{}.text(50, "later"),
	)
	got := e.take(9)
	if a := got[1]; a.number != theHash || a.values[2] != abc || a.values[1] != string(metadata) {
		t.Errorf("hash: %v", a)
	}
	sealed := got[1<<63]
	if sealed.number != theEncrypt || len(sealed.values[replyCiphertext]) != len("secret") {
		t.Fatalf("encrypt: %v", sealed)
	}
	signed := got[3]
	if signed.number != theSign || len(signed.values[1]) != 64 {
		t.Fatalf("sign: %v", signed)
	}
	for id, want := range map[uint64]struct {
		code codes.Code
		text string
	}{
		4: {codes.FailedPrecondition, `SignCertificate with profile "P": the profile does not offer this operation`},
		5: {codes.Unimplemented, "Exchange: the call has none of the requests that this broker knows"},
		6: {codes.InvalidArgument, `HashData with profile "nope": no profile of this name is served`},
		7: {codes.InvalidArgument, "Exchange: the call has 2 requests, expected one"},
		8: {codes.InvalidArgument, "HashData: the request is not a cryptobroker.v1.HashDataRequest: cannot parse invalid wire-format data"},
		9: {codes.InvalidArgument, "HashData: metadata has 1048585 bytes, expected at most 1048576"},
	} {
		if a := got[id]; a.code() != want.code || a.values[theText] != want.text {
			t.Errorf("call %d: got %s %q\nwant %s %q", id, a.code(), a.values[theText], want.code, want.text)
		}
	}
	inner := parse(t, []byte(sealed.values[replyCipherMetadata]))
	e.send(
		callOf(1, theDecrypt, message{}.text(dataProfile, "AES").bytes(dataKey, raw(key)).text(dataText, sealed.values[replyCiphertext]).
			bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce).text(cipherTag, inner[sealedTag]))),
		callOf(2, theVerify, message{}.text(signProfile, "Own").bytes(signKey, one(raw(publicPEM(edKey)))).text(signInput, "abc").
			text(verifySignature, signed.values[1])),
	)
	got = e.take(2)
	if a := got[1]; a.number != theDecrypt || a.values[1] != "secret" {
		t.Errorf("decrypt: %v", a)
	}
	if a := got[2]; a.number != theVerify || a.values[1] != "\x01" {
		t.Errorf("verify: %v", a)
	}
	e.closeSend()
	if got, err := e.ends(); err != nil || len(got) > 0 {
		t.Errorf("after the client closed its side: %v, %v", got, err)
	}
	awaitMetrics(t, b,
		`crypto_broker_requests_total{code="OK",operation="HashData",profile="P"} 1`,
		`crypto_broker_requests_total{code="OK",operation="SignData",profile="Own"} 1`,
		`crypto_broker_requests_total{code="FailedPrecondition",operation="SignCertificate",profile="P"} 1`,
		`crypto_broker_requests_in_flight 0`)
}

func TestHashesAndSlowSignaturesAllComeBack(t *testing.T) {
	e := exchange(t, connect(t, start(t, exchangeProfiles).socket("")))
	const signatures, hashes = 50, 3000
	for id := range uint64(signatures) {
		e.send(slowCall(1_000_000 + id))
	}
	for id := range uint64(hashes / 10) {
		var calls []message
		for k := range uint64(10) {
			calls = append(calls, hashCall(id*10+k, "P", "abc"))
		}
		e.send(calls...)
	}
	for id, a := range e.take(signatures + hashes) {
		if a.code() != codes.OK || (a.number == theSign) != (id >= 1_000_000) {
			t.Errorf("call %d: %v", id, a)
		}
	}
	e.closeSend()
	if _, err := e.ends(); err != nil {
		t.Error(err)
	}
}

// gate has one key, and only once it is open.
type gate struct {
	key  *keys.Key
	open chan struct{}
}

func newGate() gate {
	return gate{must(keys.NewSigning("ed", edKey, nil)), make(chan struct{})}
}

// Key implements keys.Provider.
func (g gate) Key(ctx context.Context, _ keys.Name) (*keys.Key, error) {
	select {
	case <-g.open:
		return g.key, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gated is the request for a signature that waits at the gate.
func gated() message {
	return message{}.text(signProfile, "Ed").bytes(signKey, one(byID("ed"))).text(signInput, "abc")
}

func TestHashesOvertakeASignature(t *testing.T) {
	g := newGate()
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(g))
	e := exchange(t, connect(t, b.socket("")))
	e.send(callOf(1, theSign, gated()))
	const hashes = 5000
	for id := range uint64(hashes) {
		e.send(hashCall(2+id, "P", "abc"))
	}
	for id, a := range e.take(hashes) {
		if a.values[2] != abc {
			t.Fatalf("call %d: %v", id, a)
		}
	}
	close(g.open)
	if a := e.take(1)[1]; a.number != theSign {
		t.Errorf("the signature: %v", a)
	}
}

func TestAnIDInFlightIsRefused(t *testing.T) {
	g := newGate()
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(g))
	e := exchange(t, connect(t, b.socket("")))
	e.send(callOf(7, theSign, gated()), hashCall(7, "P", "abc"))
	if a := e.take(1)[7]; a.code() != codes.InvalidArgument || a.values[theText] != "Exchange: a call with the id 7 is being served, expected an id that is free" {
		t.Errorf("while the first is served: %v", a)
	}
	close(g.open)
	if a := e.take(1)[7]; a.number != theSign {
		t.Errorf("the first: %v", a)
	}
	e.send(hashCall(7, "P", "abc"))
	if a := e.take(1)[7]; a.values[2] != abc {
		t.Errorf("once the id is free: %v", a)
	}
}

func TestATurnThatComesTooLateIsNotServed(t *testing.T) {
	g := newGate()
	b := startWith(t, exchangeProfiles, nil, server.WithKeys(g))
	e := exchange(t, connect(t, b.socket("")))
	workers := uint64(runtime.GOMAXPROCS(0)) // or fewer
	for id := range workers {
		e.send(callOf(id, theSign, gated()))
	}
	e.send(
		message{}.bytes(requestCalls, message{}.number(theID, 98).number(theTimeout, 1).bytes(theSign, gated())),
		message{}.bytes(requestCalls, message{}.number(theID, 99).number(theTimeout, 60_000).bytes(theSign, gated())),
		hashCall(100, "P", "abc"),
	)
	e.take(1)
	for came := time.Now(); time.Since(came) < 2*time.Millisecond; {
		runtime.Gosched() // until the turn of 98 is over
	}
	close(g.open)
	got := e.take(int(workers) + 2)
	if a := got[98]; a.code() != codes.DeadlineExceeded || a.values[theText] != "SignData: no worker was free within the timeout of 1ms" {
		t.Errorf("too late: %v", a)
	}
	if a := got[99]; a.number != theSign {
		t.Errorf("in time: %v", a)
	}
}

func TestANewSetIsServedToStreamsThatAreOpen(t *testing.T) {
	b := start(t, sha256Profile)
	e := exchange(t, connect(t, b.socket("")))
	for id, algorithm := range []string{"sha-384", "sha3-512", "sha-256"} {
		b.use(t, "- Name: P\n  API: {HashData: {HashAlg: "+algorithm+"}}\n")
		e.send(hashCall(uint64(id), "P", "abc"))
		descriptor := e.take(1)[uint64(id)].values[4]
		if got := parse(t, []byte(descriptor))[3]; got != algorithm {
			t.Errorf("got %s, want %s", got, algorithm)
		}
	}
}

func TestTheCallerOfAStreamIsThatOfItsSocket(t *testing.T) {
	b := start(t, "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n  Callers: {Containers: [app]}\n", "app", "side")
	for socket, want := range map[string]codes.Code{"app": codes.OK, "side": codes.PermissionDenied} {
		e := exchange(t, connect(t, b.socket(socket)))
		e.send(hashCall(1, "P", "abc"))
		if got := e.take(1)[1].code(); got != want {
			t.Errorf("%s: got %s, want %s", socket, got, want)
		}
	}
}

func TestAStreamWithBytesThatAreNoMessageEndsAfterItsReplies(t *testing.T) {
	e := exchange(t, connect(t, start(t, sha256Profile).socket("")))
	e.send(hashCall(1, "P", "abc"), message{0xff})
	got, err := e.ends()
	if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), "Exchange: a message is not a cryptobroker.stream.v1.ExchangeRequest: ") {
		t.Errorf("got %v, want InvalidArgument that says so", err)
	}
	if got[1].values[2] != abc {
		t.Errorf("the call before it: %v", got)
	}
}
