// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/sessionclient"
)

// must returns a value that cannot be missing in a test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// client returns a client of the gateway without a session.
func (f *fixture) client(t testing.TB, h2 bool) *sessionclient.Client {
	return sessionclient.New(t, "http://"+f.address, h2)
}

// connect begins a session. clientID is empty for version 1.
func connect(t testing.TB, f *fixture, clientID string, h2 bool) *sessionclient.Client {
	t.Helper()
	return f.client(t, h2).Connect(clientID)
}

// sendTarget sends a request without encryption. The request line has exactly the given target, whatever the URL is.
func sendTarget(t testing.TB, address, target string, r *http.Request) (sessionclient.Answer, []byte) {
	t.Helper()
	conn := must((&net.Dialer{}).DialContext(t.Context(), "tcp", address))
	defer func() { _ = conn.Close() }()
	body := must(io.ReadAll(r.Body))
	length := ""
	if len(body) > 0 {
		length = fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	must(fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n%s\r\n%s", r.Method, target, length, body))
	response, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return sessionclient.ReadAnswer(t, response)
}
