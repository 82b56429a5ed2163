// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// written gets each line of a log.
type written chan string

func (w written) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

func TestWhatAServerSendsAfterItsReplyIsNotLogged(t *testing.T) {
	lines := make(written, 10)
	handler, _ := New(Options{To: lines, Format: JSON, Level: slog.LevelDebug, Component: "test", Version: "1"})
	before := slog.Default()
	slog.SetDefault(slog.New(handler)) // as the programs do; the package log writes to it then
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return // the test has ended
		}
		defer func() { _ = conn.Close() }()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return // the client sees that there is no reply
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and a secret") // the client sees if it fails
		_, _ = io.Copy(io.Discard, conn)
	}()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "ok" {
		t.Errorf("found %q, %v", body, err)
	}
	_ = response.Body.Close() // it has been read
	select {
	case line := <-lines:
		if !strings.Contains(line, `"msg":"`+unsolicited+`"`) || strings.Contains(line, "secret") {
			t.Errorf("found the line %s", line)
		}
	case <-time.After(time.Minute):
		t.Error("net/http has written no line")
	}
}
