// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// breakOff ends the connection of a request.
func breakOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// hang waits until the gateway gives a request up. A server notices that once it has read the body.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestAnApplicationThatFailsHasAnAnswerAndOneLogLine(t *testing.T) {
	large := strings.Repeat("x", limits.MaxInputSize+1)
	for sentence, test := range map[string]struct {
		app    http.HandlerFunc
		change func(*settings)
		code   int
		log    string
	}{
		"nobody listens": {
			func(http.ResponseWriter, *http.Request) {}, func(s *settings) { s.AppPort = freePort(t) }, 503, "no connection to",
		},
		"the connection ends before the reply": {func(w http.ResponseWriter, _ *http.Request) { breakOff(w) }, nil, 502, "ended before the reply"},
		"the connection ends within a chunked reply": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				breakOff(w)
			}, nil, 502, "ended before the reply",
		},
		"the reply does not come in time": {
			func(_ http.ResponseWriter, r *http.Request) { hang(r) }, func(s *settings) { s.app = 50 * time.Millisecond }, 504, "no whole reply",
		},
		"the reply does not end in time": {
			func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				hang(r)
			}, func(s *settings) { s.app = 50 * time.Millisecond }, 504, "no whole reply",
		},
		"the reply is too large": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1048577")
				_, _ = io.WriteString(w, large)
			}, nil, 502, "more than 1 MiB",
		},
		"the reply is too large and of unknown size": {
			func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, large)
			}, nil, 502, "more than 1 MiB",
		},
		"the reply is a stream of events": {
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				hang(r)
			}, nil, 502, "a stream of events",
		},
		"the reply is compressed": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") }, nil, 502, "Content-Encoding",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := start(t, test.app, func(s *settings) {
				if test.change != nil {
					test.change(s)
				}
			})
			c := connect(t, f, "", false)
			for range 2 {
				if answer, body := c.Do(c.Request(http.MethodPost, "/a", "x")); answer.StatusCode != test.code || answer.Header.Get("X-Kid") != "" {
					t.Errorf("%s: %s", answer.Status, body)
				}
			}
			if got := strings.Count(f.log.String(), test.log); got != 1 {
				t.Errorf("%q is in the log %d times: %s", test.log, got, f.log)
			}
		})
	}
}

// freePort returns a port on which nobody listens.
func freePort(t testing.TB) uint16 {
	t.Helper()
	return portOf(t, must(loopback.Reserve("127.0.0.1")))
}

func TestTheStatusOfAReplyIsTheOneOfTheApplicationUnlessItHasNoBody(t *testing.T) {
	for from, want := range map[int]int{200: 200, 404: 404, 500: 500, 302: 302, 204: 200, 304: 200, 205: 200} {
		f := start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(from) })
		for _, clientID := range versions {
			if code, text := connect(t, f, clientID, false).Buy("/a", "x"); code != want || text != "" {
				t.Errorf("%d became %d %q, want %d", from, code, text, want)
			}
		}
	}
}

func TestRepliesOfTheLargestSizePass(t *testing.T) {
	for sentence, length := range map[string]bool{"of known size": true, "of unknown size": false} {
		t.Run(sentence, func(t *testing.T) {
			body := strings.Repeat("x", limits.MaxInputSize)
			f := start(t, func(w http.ResponseWriter, _ *http.Request) {
				if length {
					w.Header().Set("Content-Length", "1048576")
				} else {
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.WriteString(w, body)
			})
			if _, text := connect(t, f, "", true).Buy("/a", "x"); text != body {
				t.Errorf("the client reads %d bytes", len(text))
			}
		})
	}
}

func TestAnApplicationThatClosesItsConnectionsIsAskedOverNewOnes(t *testing.T) {
	f := start(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	c := connect(t, f, "", false)
	for range 5 {
		if code, _ := c.Buy("/a", "x"); code != http.StatusOK {
			t.Errorf("got %d", code)
		}
	}
}

func TestADecryptedBodyIsOverwrittenOnceNobodyReadsIt(t *testing.T) {
	p := &plaintext{bytes: []byte("secret")}
	first, second := must(p.open()), must(p.open())
	p.end()
	if string(p.bytes) != "secret" {
		t.Error("it is overwritten while it is read")
	}
	_ = first.Close()
	_ = first.Close()
	if got := must(io.ReadAll(second)); string(got) != "secret" {
		t.Errorf("a reader got %q", got)
	}
	_ = second.Close()
	if string(p.bytes) != "\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q is left", p.bytes)
	}
	if _, err := p.open(); err == nil {
		t.Error("it is read after its end")
	}
}

func TestASessionThatEndsWhileTheApplicationWorksIsBegunAgain(t *testing.T) {
	var f *fixture
	f = start(t, func(http.ResponseWriter, *http.Request) { f.service.Sessions.Close() })
	c := connect(t, f, "", false)
	if answer, body := c.Do(c.Request(http.MethodPost, "/a", "x")); answer.StatusCode != http.StatusUnauthorized || string(body) != `{"error":"SESSION_EXPIRED"}` {
		t.Errorf("%s: %s", answer.Status, body)
	}
}

func TestRequestsThatHaveBegunEndBeforeTheGateway(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		working, goOn := make(chan struct{}), make(chan struct{})
		f := start(t, func(w http.ResponseWriter, _ *http.Request) {
			close(working)
			<-goOn
			_, _ = io.WriteString(w, "sold")
		})
		c := connect(t, f, "", h2)
		// A connection without a request does not keep the gateway.
		unused := must((&net.Dialer{}).DialContext(t.Context(), "tcp", f.address))
		defer func() { _ = unused.Close() }()
		answered, down := make(chan string, 1), make(chan struct{})
		go func() {
			_, text := c.Buy("/a", "x")
			answered <- text
		}()
		<-working
		go func() {
			defer close(down)
			ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
			defer cancel()
			f.Shutdown(ctx)
		}()
		await(t, "new connections are refused", func() bool {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.address)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		select {
		case <-down:
			t.Error("the gateway has ended before a request")
		default:
		}
		close(goOn)
		if text := <-answered; text != "sold" {
			t.Errorf("the client reads %q", text)
		}
		<-down
	}
}
