// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// sinks are all outputs of a broker: its log, spans, metrics, the other pages of the status port, and audit records.
type sinks struct {
	mu    sync.Mutex
	texts map[string]*bytes.Buffer
}

func (s *sinks) add(name string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string]*bytes.Buffer{}
	}
	if s.texts[name] == nil {
		s.texts[name] = &bytes.Buffer{}
	}
	s.texts[name].Write(append(text, '\n'))
}

func (s *sinks) text(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[name] == nil {
		return ""
	}
	return s.texts[name].String()
}

// collector starts a server that takes spans by OTLP over HTTP. It refuses the first ones, and quotes
// the header Authorization then.
func (s *sinks) collector(t *testing.T) string {
	t.Helper()
	var refusals sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a file that cannot be read cannot be searched
		s.add("spans", body)
		refusals.Do(func() {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "who is "+r.Header.Get("Authorization"))
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// echo starts a server of key managers that has a key "kek". It refuses other requests, and quotes the
// token and the request.
func echo(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // as above
		if strings.HasSuffix(r.URL.Path, "/keys/kek") {
			_, _ = io.WriteString(w, `{"data": {"type": "aes256-gcm96", "latest_version": 1, "keys": {"1": 1}}}`)
			return
		}
		said, _ := json.Marshal(map[string][]string{"errors": {"refused " + r.Header.Get("X-Vault-Token") + " " + string(body)}})
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(said)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// oldRedis starts a server that answers like Redis before version 6: to a command that it does not know
// it quotes the arguments, of which one is the password.
func oldRedis(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				request := make([]byte, 4096)
				for {
					n, err := conn.Read(request)
					if err != nil {
						return
					}
					quoted := strings.Join(strings.Fields(string(request[:n])), " ")
					_, _ = fmt.Fprintf(conn, "-ERR unknown command, with args beginning with: %s\r\n", quoted)
				}
			}()
		}
	}()
	return listener.Addr().String()
}
