// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// A proxy in front of the gateway may see the end of a request at another place. Then a part of one client's request would become a
// separate request, and another client would get its answer.
func TestNothingFollowsARequestWhoseEndIsNotClear(t *testing.T) {
	const rest = "0\r\n\r\n" // an empty body with Transfer-Encoding, and five bytes
	for sentence, test := range map[string]struct {
		head, rest string
		codes      []int // the statuses of the request, and of the next request on the connection if that gets an answer
	}{
		"both ways to size":                        {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", rest, []int{401}},
		"both ways, with a tab":                    {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding:\tchunked", rest, []int{401}},
		"both ways, with another control":          {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: \x0bchunked", rest, []int{400}},
		"both ways, with a space before":           {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding : chunked", rest, []int{400}},
		"both ways in HTTP/1.0":                    {"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", rest, []int{401}},
		"both ways of a beginning":                 {"POST /session/init HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", rest, []int{400}},
		"both ways of a plain request":             {"GET /healthz HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", rest, []int{403}},
		"another transfer encoding":                {"POST /a HTTP/1.1\r\nTransfer-Encoding: xchunked", rest, []int{501}},
		"two transfer encodings":                   {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity", rest, []int{501}},
		"no transfer encoding, but its header":     {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: identity", rest, []int{501}},
		"a size with a sign":                       {"POST /a HTTP/1.1\r\nContent-Length: +5", rest, []int{400}},
		"a negative size":                          {"POST /a HTTP/1.1\r\nContent-Length: -5", rest, []int{400}},
		"a list of sizes":                          {"POST /a HTTP/1.1\r\nContent-Length: 5, 5", rest, []int{400}},
		"a size in a trailer":                      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length", "0\r\nContent-Length: 9\r\n\r\n", []int{400}},
		"a chunk that ends with half a line":       {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked", "0\n\n", []int{400}},
		"a line end in an extension of a chunk":    {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked", "0;a\n\r\n\r\n", []int{400}},
		"a header that begins with a space":        {"POST /a HTTP/1.1\r\n Content-Length: 5", rest, []int{400}},
		"a carriage return in a header":            {"POST /a HTTP/1.1\r\nX-A: a\rContent-Length: 5", rest, []int{400}},
		"a second host":                            {"GET /healthz HTTP/1.1\r\nHost: b", "", []int{400}},
		"a space in the target":                    {"GET /healthz /a HTTP/1.1", "", []int{400}},
		"a body for which the client waits":        {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nExpect: 200-ok", rest, []int{417}},
		"a size alone":                             {"POST /a HTTP/1.1\r\nContent-Length: 5", rest, []int{401, 201}},
		"a size whose header has another spelling": {"POST /a HTTP/1.1\r\nContent_Length: 5", "", []int{401, 201}},
		"a header over two lines":                  {"POST /a HTTP/1.1\r\nX-A: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 5", rest, []int{401, 201}},
		"a tunnel":                                 {"CONNECT /a HTTP/1.1", "", []int{405, 201}},
		"another protocol":                         {"GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket", "", []int{401, 201}},
		"HTTP/2 on the same connection":            {"GET /healthz HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", "", []int{401, 201}},
	} {
		t.Run(sentence, func(t *testing.T) {
			requests := make(chan arrived, 2)
			f := start(t, recording(requests))
			conn := dial(t, f)
			first, others, _ := strings.Cut(test.head, "\r\n")
			if others != "" {
				others += "\r\n"
			}
			text := first + "\r\nHost: a\r\n" + others
			if !strings.HasPrefix(test.head, "GET") || strings.Contains(test.head, "Upgrade") {
				text += "X-Kid: a\r\n"
			}
			text += "\r\n" + test.rest + "GET /healthz HTTP/1.1\r\nHost: next\r\nConnection: close\r\n\r\n"
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
				t.Fatal(err)
			}
			var codes []int
			reader := bufio.NewReader(conn)
			for {
				answer, err := http.ReadResponse(reader, nil)
				if err != nil { // the connection has ended
					break
				}
				codes = append(codes, answer.StatusCode)
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
			if !slices.Equal(codes, test.codes) {
				t.Errorf("the answers are %v, want %v", codes, test.codes)
			}
			if got := len(requests); got != len(test.codes)-1 {
				t.Errorf("the application got %d requests, want %d", got, len(test.codes)-1)
			}
		})
	}
}
