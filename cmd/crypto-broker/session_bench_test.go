// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/sessionbench"
)

const sessionProfile = "- Name: Shop\n  API: {Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}\n"

// shop is an application that serves the protocol by HTTP.
type shop struct {
	broker sessionv1.SessionServiceClient
	// requests counts the encrypted requests. The server refuses the request with the number refused, and falsifies the reply to
	// the request with the number falsified.
	requests           atomic.Int32
	refused, falsified int32
}

func newShop(t *testing.T) (*shop, string) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+serve(t, sessionProfile), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{broker: sessionv1.NewSessionServiceClient(conn)}
	served := httptest.NewServer(s)
	t.Cleanup(func() {
		served.Close()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, served.URL
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := r.Header.Get
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	if r.URL.Path == "/session/init" {
		var asked struct {
			KeyAgreement, ClientPublicKey string
			TTLSec                        uint32
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			panic(err)
		}
		begun, err := s.broker.InitSession(r.Context(), &sessionv1.InitSessionRequest{
			Profile: "Shop", KeyAgreement: asked.KeyAgreement, ClientPublicKey: asked.ClientPublicKey, TtlSec: asked.TTLSec,
			Nonce: h("X-Nonce"), Timestamp: h("X-Timestamp"), ClientId: h("X-ClientId"),
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"sessionId": begun.GetSessionId(), "serverPublicKey": begun.GetServerPublicKey(), "encAlg": begun.GetEncAlg(), "expiresInSec": begun.GetExpiresInSec(),
		})
		return
	}
	number := s.requests.Add(1)
	opened, err := s.broker.OpenRequest(r.Context(), &sessionv1.OpenRequestRequest{
		Profile: "Shop", Method: r.Method, Path: r.URL.Path, Kid: h("X-Kid"), EncAlg: h("X-Enc-Alg"), Iv: h("X-IV"), Tag: h("X-Tag"), Aad: h("X-AAD"),
		Nonce: h("X-Nonce"), Timestamp: h("X-Timestamp"), IdempotencyKey: h("X-Idempotency-Key"), ClientId: h("X-ClientId"), Body: body,
	})
	if err != nil || number == s.refused {
		http.Error(w, `{"error":"CRYPTO_ERROR"}`, http.StatusBadRequest)
		return
	}
	reply, err := s.broker.SealReply(r.Context(), &sessionv1.SealReplyRequest{
		Profile: "Shop", SessionId: opened.GetSessionId(), ClientPath: opened.GetClientPath(), Plaintext: opened.GetPlaintext(),
	})
	if err != nil {
		panic(err)
	}
	if number == s.falsified {
		reply.Nonce = "another"
	}
	for name, value := range map[string]string{
		"X-Kid": reply.GetKid(), "X-Enc-Alg": reply.GetEncAlg(), "X-IV": reply.GetIv(), "X-Tag": reply.GetTag(), "X-AAD": reply.GetAad(), "X-Nonce": reply.GetNonce(),
		"X-Timestamp": reply.GetTimestamp(), "X-Idempotency-Key": reply.GetIdempotencyKey(), "X-ClientId": reply.GetClientId(),
	} {
		w.Header().Set(name, value)
	}
	_, _ = w.Write(reply.GetBody())
}

// phasesOf returns the phases of each measurement in a result as JSON, and checks the numbers.
func phasesOf(t *testing.T, output string, done int) map[string][]string {
	t.Helper()
	var records []sessionbench.Record
	if err := json.Unmarshal([]byte(output), &records); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	phases := map[string][]string{}
	for _, r := range records {
		phases[r.Measured] = append(phases[r.Measured], r.Phase)
		if r.Done != done || r.Failed != 0 || r.Mean <= 0 || r.P50 <= 0 || r.P50 > r.P95 || r.P95 > r.P99 || r.P99 > r.Max || r.Mean > r.Max {
			t.Errorf("%+v, want %d done and times in order", r, done)
		}
		if r.PerSecond > 0 != (r.Phase == sessionbench.Total) {
			t.Errorf("%s, %s: %f per second", r.Measured, r.Phase, r.PerSecond)
		}
	}
	return phases
}

func TestSessionBenchMeasuresEachStep(t *testing.T) {
	socket := serve(t, sessionProfile)
	_, url := newShop(t)
	for sentence, test := range map[string]struct {
		args                  []string
		begin, send           []string
		connections, requests int
	}{
		"of a session through the socket": {
			[]string{"--socket", socket, "--profile", "Shop"}, []string{"InitSession"}, []string{"OpenRequest", "SealReply"}, 1, 20,
		},
		"of version 2 through the socket, with some connections": {
			[]string{"--socket", socket, "--profile", "Shop", "--version", "2"}, []string{"InitSession"}, []string{"OpenRequest", "SealReply"}, 3, 10,
		},
		"of a session by HTTP":                         {[]string{"--url", url}, []string{"round trip"}, []string{"round trip"}, 1, 20},
		"of version 2 by HTTP, with some connections":  {[]string{"--url", url, "--version", "2"}, []string{"round trip"}, []string{"round trip"}, 3, 10},
		"of long requests by HTTP with the least path": {[]string{"--url", url, "--size", "100000", "--path", "/"}, []string{"round trip"}, []string{"round trip"}, 1, 5},
	} {
		t.Run(sentence, func(t *testing.T) {
			args := append([]string{"session", "bench", "--measure", "init,request,both", "-o", "json"}, test.args...)
			args = append(args, "--connections", strconv.Itoa(test.connections), "--requests", strconv.Itoa(test.requests))
			got := execute(t, "", args...)
			if got.code != 0 {
				t.Fatalf("%+v", got)
			}
			begin := slices.Concat([]string{"generate key"}, test.begin, []string{"derive"})
			send := slices.Concat([]string{"seal"}, test.send, []string{"open"})
			phases := phasesOf(t, got.stdout, test.connections*test.requests)
			for measured, want := range map[string][]string{"init": begin, "request": send, "both": slices.Concat(begin, send)} {
				if !slices.Equal(phases[measured], append(slices.Clone(want), "total")) {
					t.Errorf("%s has the phases %q, want %q", measured, phases[measured], want)
				}
			}
		})
	}
}

func TestSessionBenchLeavesNoSessionInTheBroker(t *testing.T) {
	const room = 256
	socket := serve(t, sessionProfile, server.WithMemory(room*session.MemoryOfSession))
	got := execute(t, "", "session", "bench", "--socket", socket, "--profile", "Shop", "--measure", "init,request,both", "--requests", strconv.Itoa(room+1))
	if got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSessionBenchSaysThatABrokerIsFull(t *testing.T) {
	const room = 64
	socket := serve(t, sessionProfile, server.WithMemory(room*session.MemoryOfSession))
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for range room {
		if _, err := sessionv1.NewSessionServiceClient(conn).InitSession(t.Context(), &sessionv1.InitSessionRequest{
			Profile: "Shop", KeyAgreement: "ECDH_P256", Nonce: "n", Timestamp: strconv.FormatInt(time.Now().UnixMilli(), 10),
			ClientPublicKey: "BGsX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT+NC4v4af5uO5+tKfA+eFivOM1drMV7Oy7ZAaDe/UfU=", // the base point
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := execute(t, "", "session", "bench", "--socket", socket, "--profile", "Shop")
	if got.code != 4 || !strings.Contains(got.stderr, "the broker at "+socket+" has no room: InitSession with profile") {
		t.Errorf("%+v", got)
	}
}

func TestSessionBenchStopsAfterItsDuration(t *testing.T) {
	_, url := newShop(t)
	began := time.Now()
	got := execute(t, "", "session", "bench", "--url", url, "--duration", "50ms", "--output", "csv")
	records, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil || got.code != 0 || len(records) != 9 || records[1][0] != "init" || records[8][1] != "total" || records[8][10] != "0" {
		t.Errorf("%v, %+v", err, got)
	}
	if took := time.Since(began); took < 100*time.Millisecond || took > time.Minute {
		t.Errorf("two measurements took %s", took)
	}
}

func TestSessionBenchCountsWhatFails(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*shop)
		want   string
	}{
		"refusals": {
			func(s *shop) { s.refused = 5 },
			`request failed 1 times, for example: POST /transaction/purchase: the server answered 400 Bad Request: {"error":"CRYPTO_ERROR"}`,
		},
		"replies that are not authentic": {func(s *shop) { s.falsified = 5 }, "request failed 1 times, for example: the reply is not authentic"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, url := newShop(t)
			test.change(s)
			got := execute(t, "", "session", "bench", "--url", url, "--requests", "10", "--measure", "request")
			if got.code != 1 || !strings.Contains(got.stdout, test.want) || !strings.Contains(got.stdout, " 9 ") {
				t.Errorf("%+v, want %q", got, test.want)
			}
		})
	}
}

func TestSessionBenchSaysWhyNothingCanBeMeasured(t *testing.T) {
	socket := serve(t, sessionProfile)
	silent := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(silent.Close)
	text := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(text.Close)
	for sentence, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a profile without sessions":         {[]string{"--socket", socket}, 3, `"Default"`},
		"a server without the protocol":      {[]string{"--url", silent.URL}, 1, "POST /session/init: the server answered 404 Not Found: 404 page not found"},
		"a server with another protocol":     {[]string{"--url", text.URL}, 1, `the reply to POST /session/init has the sessionId "" and the encAlg "", expected an id and A256GCM`},
		"no server":                          {[]string{"--url", "http://127.0.0.1:0"}, 1, "connect to 127.0.0.1:0: "},
		"another version":                    {[]string{"--version", "3"}, 2, "found --version 3, expected 1 or 2"},
		"no connections":                     {[]string{"--connections", "0"}, 2, "found --connections 0, expected 1 to 1000"},
		"too many connections":               {[]string{"--connections", "1001"}, 2, "found --connections 1001, expected 1 to 1000"},
		"no requests":                        {[]string{"--requests", "0"}, 2, "found --requests 0, expected 1 to 1000000"},
		"no time":                            {[]string{"--duration", "0s"}, 2, "found --duration 0s, expected 1ms to 10m0s"},
		"a number and a time":                {[]string{"--duration", "1s", "--requests", "5"}, 2, "found --requests and --duration, expected one of them"},
		"a size below the least one":         {[]string{"--size", "1"}, 2, "found --size 1, expected 16 to 524288"},
		"a path with a query":                {[]string{"--path", "/a?b"}, 2, `found --path "/a?b", expected a path without a query, such as /orders`},
		"nothing to measure":                 {[]string{"--measure", "all"}, 2, `found --measure "all", expected init, request, both`},
		"a URL with a path":                  {[]string{"--url", "http://a/b"}, 2, `--url: found "http://a/b", expected nothing after the host: --path has the path`},
		"a URL of another kind":              {[]string{"--url", "unix:/a"}, 2, `--url: found "unix:/a", expected http:// or https:// and a host`},
		"a URL and a socket":                 {[]string{"--url", "http://a", "--socket", "b"}, 2, "found --url and a flag for the socket, expected one of them"},
		"an argument":                        {[]string{"x"}, 2, "found 1 arguments, expected none"},
		"an unknown form of the result":      {[]string{"--output", "xml"}, 2, "expected text, csv or json"},
		"a time for calls that is too short": {[]string{"--timeout", "0s"}, 2, "--timeout is 0s, expected more than 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := execute(t, "", append([]string{"session", "bench"}, test.args...)...)
			if got.code != test.code || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
				t.Errorf("%+v, want exit code %d and %q", got, test.code, test.want)
			}
		})
	}
}
