// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bufio"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestABrokerServesItsSessionGatewayAndEndsItLast(t *testing.T) {
	working, goOn := make(chan struct{}), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(working)
		<-goOn
		_, _ = io.WriteString(w, "fine")
	}))
	defer app.Close()
	_, port, err := net.SplitHostPort(app.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	at := newPlace(t, "")
	at.write("- Name: Session\n  API: {Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}\n")
	p := start(t, at.args("--session-gateway", "127.0.0.1:0:"+port, "--session-gateway-plain", "/healthz", "--shutdown-timeout", waitLimit.String())...)
	status := p.listening()
	gateway, _ := p.logged("listening", 1)["sessionGateway"].(string)

	if code, body := get(t, gateway, "/health"); code != http.StatusOK || !strings.HasPrefix(body, `{"status":"ok",`) {
		t.Errorf("/health: %d %s", code, body)
	}
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"keyAgreement":"ECDH_P256","clientPublicKey":"` + base64.StdEncoding.EncodeToString(own.PublicKey().Bytes()) + `","ttlSec":1800}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+gateway+"/session/init", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Nonce", "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01")
	request.Header.Set("X-Timestamp", fmt.Sprint(time.Now().UnixMilli()))
	answer, err := (&http.Client{Timeout: waitLimit, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Errorf("/session/init: %s", answer.Status)
	}
	_, metrics := get(t, status, "/metrics")
	for _, want := range []string{`crypto_broker_requests_total{code="OK",operation="InitSession",profile="Session"} 1`, "crypto_broker_sessions 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	// A request that the application is serving when the broker has to end still gets its reply.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", gateway)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-working
	p.kill(syscall.SIGTERM)
	p.logged("shutting down", 1)
	close(goOn)
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if text, err := io.ReadAll(reply.Body); err != nil || string(text) != "fine" || reply.StatusCode != http.StatusOK {
		t.Errorf("%s %q, %v", reply.Status, text, err)
	}
	p.ends(0)
}
