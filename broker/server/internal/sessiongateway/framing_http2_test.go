// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// message is a request of HTTP/2 with its header fields in their order.
type message struct {
	fields [][2]string
	body   []byte
}

// fieldsOf returns a request of the path /a as a message. Its first four fields are method, scheme, path and authority.
func fieldsOf(r *http.Request) message {
	m := message{[][2]string{{":method", r.Method}, {":scheme", "http"}, {":path", "/a"}, {":authority", "shop"}}, must(io.ReadAll(r.Body))}
	for name := range r.Header {
		m.fields = append(m.fields, [2]string{strings.ToLower(name), r.Header.Get(name)})
	}
	return m
}

// sendHTTP2 begins a connection of HTTP/2 with a request.
func sendHTTP2(t testing.TB, conn net.Conn, m message) *http2.Framer {
	t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range m.fields {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteData(1, true, m.body); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	return framer
}

// outcome returns the status of the answer, or "refused" if the gateway ends the stream or the connection.
func outcome(framer *http2.Framer) string {
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return "refused"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "refused"
		}
	}
}

func TestNoFieldOfHTTP2SetsTheIdentityOrAnotherRequest(t *testing.T) {
	set := func(index int, value string) func(*message) { return func(m *message) { m.fields[index][1] = value } }
	add := func(name, value string) func(*message) {
		return func(m *message) { m.fields = append(m.fields, [2]string{name, value}) }
	}
	const method, scheme, path, authority = 0, 1, 2, 3
	injected := " HTTP/1.1\r\nX-Session-Id: admin\r\nX: "
	for sentence, test := range map[string]struct {
		change func(*message)
		want   string
	}{
		"nothing":                              {func(*message) {}, "201"},
		"a method with lines":                  {set(method, "GET /x"+injected), "refused"},
		"a method with a space":                {set(method, "POST "), "401"},
		"a method in lower case":               {set(method, "post"), "401"},
		"a tunnel":                             {set(method, "CONNECT"), "refused"},
		"another scheme":                       {set(scheme, "javascript"), "refused"},
		"a path with lines":                    {set(path, "/a"+injected), "refused"},
		"a path with a space":                  {set(path, "/a b"), "401"},
		"a path without a slash":               {set(path, "a"), "refused"},
		"an asterisk":                          {set(path, "*"), "401"},
		"two paths":                            {add(":path", "/other"), "refused"},
		"a host with lines":                    {set(authority, "shop"+injected), "refused"},
		"a host with a user":                   {set(authority, "user@shop"), "refused"},
		"a second host":                        {add("host", "other"), "201"},
		"another protocol":                     {add(":protocol", "websocket"), "refused"},
		"an identity":                          {add("x-session-id", "admin"), "201"},
		"an identity in upper case":            {add("X-Session-Id", "admin"), "refused"},
		"a field with lines":                   {add("x-correlation-id", "a"+injected), "refused"},
		"a field with a zero":                  {add("x-correlation-id", "a\x00"), "refused"},
		"a name of a field with a line":        {add("x-correlation-id\r\nx-session-id", "admin"), "refused"},
		"a transfer encoding":                  {add("transfer-encoding", "chunked"), "400"},
		"a size that is not the one of it all": {add("content-length", "3"), "refused"},
	} {
		for version, clientID := range versions {
			t.Run(fmt.Sprint(sentence, ", ", version), func(t *testing.T) {
				requests := make(chan arrived, 1)
				f := start(t, recording(requests))
				c := connect(t, f, clientID, false)
				m := fieldsOf(c.Request(http.MethodPost, "/a", "x"))
				test.change(&m)
				got := outcome(sendHTTP2(t, dial(t, f), m))
				if got != test.want {
					t.Errorf("the answer is %s, want %s", got, test.want)
				}
				if got != "201" {
					if len(requests) > 0 {
						t.Errorf("the application got %v", next(t, requests))
					}
					return
				}
				if a := next(t, requests); a.method != "POST" || a.uri != "/a" || a.host != "shop" || len(a.headers["X-Session-Id"]) != 1 || a.headers.Get("X-Session-Id") != c.ID {
					t.Errorf("the application got %v", a)
				}
			})
		}
	}
}
