// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
)

// serveReplica serves as a replica that ends once done is closed.
func serveReplica(t *testing.T, done <-chan struct{}) *httptest.Server {
	t.Helper()
	return httptest.NewTLSServer(leaving(done, http.HandlerFunc(echo)))
}

// call calls a replica, and reports whether it used an existing connection.
func call(ctx context.Context, client *http.Client, url string) (reused bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return false, err
	}
	if response.ProtoMajor != 1 || response.StatusCode != http.StatusOK || string(body) != "{}" {
		return false, fmt.Errorf("answered %s %d %q, expected HTTP/1.1 200 {}", response.Proto, response.StatusCode, body)
	}
	return reused, nil
}

// No client uses the old connection any more when the server closes it.
func TestAReplicaThatIsAboutToEndSendsItsClientsToNewConnections(t *testing.T) {
	done := make(chan struct{})
	server := serveReplica(t, done)
	defer server.Close()

	for _, test := range []struct {
		what   string
		before func()
		reused bool
	}{
		{"the first call", func() {}, false},
		{"the second", func() {}, true},
		{"the one that is told", func() { close(done) }, true},
		{"the one after it", func() {}, false},
	} {
		test.before()
		reused, err := call(t.Context(), server.Client(), server.URL)
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		if reused != test.reused {
			t.Errorf("%s took a connection that was there: %t, expected %t", test.what, reused, test.reused)
		}
	}
}
