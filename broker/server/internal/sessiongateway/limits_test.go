// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/test/sessionclient"
)

// dial opens a connection to the gateway that reads little in advance.
func dial(t testing.TB, f *fixture) net.Conn {
	t.Helper()
	conn := must((&net.Dialer{}).DialContext(t.Context(), "tcp", f.address))
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	return conn
}

// closes waits until the gateway has closed a connection, and returns what it has sent.
func closes(t testing.TB, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	sent, err := io.ReadAll(conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // a connection returns it as it is
		t.Fatal("the gateway does not close the connection")
	}
	return string(sent)
}

func TestSlowClientsLoseTheirConnections(t *testing.T) {
	const quick = 50 * time.Millisecond
	never := func(http.ResponseWriter, *http.Request) {}
	preface := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // with empty SETTINGS
	for sentence, test := range map[string]struct {
		sends string
		slow  func(*settings)
		want  string
	}{
		"nothing comes":                    {"", func(s *settings) { s.header = quick }, ""},
		"a header does not end":            {"POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: ", func(s *settings) { s.header = quick }, ""},
		"a body does not come":             {"POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\nContent-Length: 9\r\n\r\nabc", func(s *settings) { s.read = quick }, "HTTP/1.1 408"},
		"a chunked body does not end":      {"POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", func(s *settings) { s.read = quick }, "HTTP/1.1 408"},
		"the body of a beginning":          {"POST /session/init HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", func(s *settings) { s.read = quick }, "HTTP/1.1 408"},
		"a body that is refused":           {"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", func(s *settings) { s.read = quick }, "HTTP/1.1 403"},
		"no next request comes":            {"GET /health HTTP/1.1\r\nHost: a\r\n\r\n", func(s *settings) { s.idle = quick }, "HTTP/1.1 200"},
		"the preface of HTTP/2 alone":      {preface, func(s *settings) { s.idle = quick }, ""},
		"half of the preface":              {preface[:8], func(s *settings) { s.header = quick }, ""},
		"a header of HTTP/2 does not end":  {preface + "\x00\x00\x10\x01\x04\x00\x00\x00\x01\x82", func(s *settings) { s.idle = quick }, ""},
		"a header of HTTP/2 has no end":    {preface + "\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82", func(s *settings) { s.idle = quick }, ""},
		"a frame of HTTP/2 is not of HTTP": {preface + "\xff\xff\xff\xff\xff\xff\xff\xff\xff", func(*settings) {}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := start(t, never, test.slow)
			conn := dial(t, f)
			if _, err := io.WriteString(conn, test.sends); err != nil {
				t.Fatal(err)
			}
			if got := closes(t, conn); !strings.HasPrefix(got, test.want) {
				t.Errorf("the gateway sends %q, want %q", got, test.want)
			}
			await(t, "all calls have ended", func() bool { return f.calls() == 0 })
		})
	}
}

// rawRequest is an encrypted request of HTTP/1.1 as text.
func rawRequest(t testing.TB, c *sessionclient.Client) string {
	var text strings.Builder
	if err := c.Request(http.MethodPost, "/a", "x").Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// large is an application whose reply is larger than the buffers of a connection.
func large(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, strings.Repeat("x", limits.MaxInputSize))
}

func TestAClientThatDoesNotReadLosesItsReply(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) {
		t.Parallel()
		f := start(t, large, func(s *settings) { s.write = 2 * time.Second })
		c := connect(t, f, "", false)
		conn := dial(t, f)
		if _, err := io.WriteString(conn, rawRequest(t, c)); err != nil {
			t.Fatal(err)
		}
		await(t, "the call has begun", func() bool { return f.calls() == 1 })
		await(t, "the call has ended", func() bool { return f.calls() == 0 })
		if got := len(closes(t, conn)); got > limits.MaxInputSize {
			t.Errorf("the gateway has sent %d bytes", got)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		f := start(t, large, func(s *settings) { s.write = 2 * time.Second })
		c := connect(t, f, "", false)
		conn := dial(t, f)
		framer := sendHTTP2(t, conn, fieldsOf(c.Request(http.MethodPost, "/a", "x")))
		for { // without a WINDOW_UPDATE, the reply does not end
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if _, reset := frame.(*http2.RSTStreamFrame); reset {
				break
			}
			if frame.Header().Flags.Has(http2.FlagDataEndStream) && frame.Header().Type == http2.FrameData {
				t.Fatal("the reply has come as a whole")
			}
		}
		await(t, "the call has ended", func() bool { return f.calls() == 0 })
	})
}

func TestSizesOfRequestsAreBounded(t *testing.T) {
	f := start(t, func(http.ResponseWriter, *http.Request) {})
	body := strings.Repeat("A", limits.MaxInputSize+1)
	chunk := fmt.Sprintf("%x\r\n%s", len(body), body)
	for sentence, test := range map[string]struct {
		sends string
		want  int
	}{
		"a body":           {fmt.Sprintf("POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\nContent-Length: %d\r\n\r\n", len(body)), 413},
		"a chunked body":   {"POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk, 413},
		"a beginning":      {"POST /session/init HTTP/1.1\r\nHost: a\r\nContent-Length: 4097\r\n\r\n" + strings.Repeat("x", 4097), 413},
		"a header":         {"GET /health HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 24<<10) + "\r\n\r\n", 431},
		"a path":           {"GET /" + strings.Repeat("x", 4<<10) + " HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\n\r\n", 401},
		"two ways to size": {"POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
	} {
		t.Run(sentence, func(t *testing.T) {
			conn := dial(t, f)
			go func() { _, _ = io.WriteString(conn, test.sends) }() // the gateway need not read all
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil && test.want == http.StatusRequestHeaderFieldsTooLarge {
				return // the system may discard an answer if the gateway closes before it has read all
			}
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("%s, want %d", answer.Status, test.want)
			}
		})
	}
}

func TestBeyondTheShareOfRequestsOthersAreRefused(t *testing.T) {
	goOn := make(chan struct{})
	f := start(t, func(http.ResponseWriter, *http.Request) { <-goOn }, func(s *settings) { s.memory = 128 << 10 }) // 4 requests
	c := connect(t, f, "", true)
	var all sync.WaitGroup
	defer all.Wait()
	for range 4 {
		r := c.Request(http.MethodPost, "/a", "x")
		all.Go(func() {
			answer, err := c.HTTP.Do(r)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("a request within the share: %v", err)
				return
			}
			_ = answer.Body.Close()
		})
	}
	await(t, "four requests have begun", func() bool { return f.calls() == 4 })
	answer, body := c.Do(c.Request(http.MethodPost, "/a", "x"))
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s: %s", answer.Status, body)
	}
	close(goOn)
	await(t, "there is room again", func() bool {
		answer, _ := c.Do(c.Request(http.MethodPost, "/a", "x"))
		return answer.StatusCode == http.StatusOK
	})
}

func TestLargeRequestsWaitForMemoryAndAreRefusedThen(t *testing.T) {
	f := start(t, func(http.ResponseWriter, *http.Request) {}, func(s *settings) { s.memory, s.times.memory = 4<<20, 50*time.Millisecond })
	c := connect(t, f, "", false)
	conn := dial(t, f) // it takes 3 of 4 MiB
	if _, err := io.WriteString(conn, "POST /a HTTP/1.1\r\nHost: a\r\nX-Kid: a\r\nContent-Length: 1048576\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	purchase := strings.Repeat("x", 700<<10)
	// The system may discard an answer if the gateway closes before it has read all.
	answers := func(code int) func() bool {
		return func() bool {
			answer, err := c.HTTP.Do(c.Request(http.MethodPost, "/a", purchase))
			if err != nil {
				return false
			}
			return answer.Body.Close() == nil && answer.StatusCode == code
		}
	}
	await(t, "a large request is refused", answers(http.StatusServiceUnavailable))
	if code, _ := c.Buy("/a", "small"); code != http.StatusOK {
		t.Errorf("a small request got %d", code)
	}
	_ = conn.Close()
	await(t, "there is room again", answers(http.StatusOK))
}

func TestBeyondTheShareOfConnectionsTheOldestWithoutARequestEnds(t *testing.T) {
	goOn := make(chan struct{})
	working := make(chan struct{})
	f := start(t, func(http.ResponseWriter, *http.Request) {
		close(working)
		<-goOn
	}, func(s *settings) { s.connections = 4 }) // 2 of clients
	c := connect(t, f, "", false)
	answered := make(chan int, 1)
	go func() {
		code, _ := c.Buy("/a", "x")
		answered <- code
	}()
	<-working
	first := dial(t, f)
	await(t, "both connections are open", func() bool { return f.conns.Count() == 2 })
	second := dial(t, f)
	if got := closes(t, first); got != "" {
		t.Errorf("the gateway sends %q", got)
	}
	if _, err := io.WriteString(second, "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := closes(t, second); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("the gateway sends %q", got)
	}
	close(goOn)
	if code := <-answered; code != http.StatusOK {
		t.Errorf("the request got %d", code)
	}
}
