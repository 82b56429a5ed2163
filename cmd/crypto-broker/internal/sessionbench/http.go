// SPDX-License-Identifier: Apache-2.0

package sessionbench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	initPath = "/session/init"
	// maxReply is the largest body of a reply that is read, in bytes.
	maxReply = 4 << 20
	// maxShown is the maximum number of bytes of the body of a refusal in an error.
	maxShown = 200
)

// HTTP is a server that speaks the protocol by HTTP/1.1.
type HTTP struct {
	// URL has the scheme, http or https, and the host.
	URL *url.URL
	// Timeout is how long a request may take.
	Timeout time.Duration
}

// ParseURL reads the address of a server.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("found %q, expected http:// or https:// and a host", text)
	case strings.TrimSuffix(u.Path, "/") != "", u.RawQuery != "", u.User != nil, u.Fragment != "":
		return nil, fmt.Errorf("found %q, expected nothing after the host: --path has the path", text)
	}
	return u, nil
}

func (h *HTTP) phases() (toBegin, toSend []string) {
	return []string{"round trip"}, []string{"round trip"}
}

func (h *HTTP) connect(context.Context) (server, error) { return &httpServer{HTTP: h}, nil }

// httpServer is one connection, which is made when it is needed. It does not use the client of
// net/http, whose two additional goroutines take as long as a server needs for a request.
type httpServer struct {
	*HTTP
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
}

func (h *httpServer) begin(ctx context.Context, r *initRequest, t *stopwatch) (*initReply, error) {
	body, err := json.Marshal(map[string]any{"keyAgreement": keyAgreement, "clientPublicKey": r.clientPublicKey, "ttlSec": askedLifetime})
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	set(header, "Content-Type", "application/json")
	set(header, "X-Nonce", r.nonce)
	set(header, "X-Timestamp", r.timestamp)
	set(header, "X-ClientId", r.clientID)
	_, answer, err := h.do(ctx, initPath, header, body)
	if err != nil {
		return nil, err
	}
	var reply struct{ SessionID, ServerPublicKey, EncAlg string }
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fmt.Errorf("the reply to POST %s is no JSON: %w", initPath, err)
	}
	if reply.SessionID == "" || reply.EncAlg != encAlg {
		return nil, fmt.Errorf("the reply to POST %s has the sessionId %q and the encAlg %q, expected an id and %s", initPath, reply.SessionID, reply.EncAlg, encAlg)
	}
	t.lap(1)
	return &initReply{reply.SessionID, reply.ServerPublicKey}, nil
}

func (h *httpServer) send(ctx context.Context, m *message, t *stopwatch) (*message, error) {
	header := http.Header{}
	set(header, "Content-Type", "application/octet-stream")
	for name, value := range m.headers() {
		set(header, name, *value)
	}
	got, answer, err := h.do(ctx, m.path, header, m.body)
	if err != nil {
		return nil, err
	}
	reply := &message{body: answer}
	for name, value := range reply.headers() {
		*value = got.Get(name)
	}
	t.lap(1)
	return reply, nil
}

// end does nothing, because in this protocol sessions end only when their time is over.
func (h *httpServer) end(context.Context, string) error { return nil }

func (h *httpServer) close() {
	if h.conn != nil {
		_ = h.conn.Close() // the replies are here
		h.conn = nil
	}
}

// headers returns the headers of a message by their names.
func (m *message) headers() map[string]*string {
	return map[string]*string{
		"X-Kid": &m.kid, "X-Enc-Alg": &m.encAlg, "X-IV": &m.iv, "X-Tag": &m.tag, "X-AAD": &m.aad, "X-Nonce": &m.nonce, "X-Timestamp": &m.timestamp,
		"X-Idempotency-Key": &m.idempotencyKey, "X-ClientId": &m.clientID,
	}
}

func set(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

// do makes a request, and returns header and body of the reply. After an error, the next request gets a new
// connection.
func (h *httpServer) do(ctx context.Context, path string, header http.Header, body []byte) (_ http.Header, _ []byte, err error) {
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	if err := h.open(ctx); err != nil {
		return nil, nil, err
	}
	conn := h.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // so that reads and writes end
	defer stop()
	request, err := http.NewRequestWithContext(ctx, method, h.URL.Scheme+"://"+h.URL.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header = header
	if err := errors.Join(request.Write(h.out), h.out.Flush()); err != nil {
		return nil, nil, fmt.Errorf("POST %s: %w", path, err)
	}
	response, err := http.ReadResponse(h.in, request)
	if err != nil {
		return nil, nil, fmt.Errorf("POST %s: read the reply: %w", path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, maxReply))
	if err != nil {
		return nil, nil, fmt.Errorf("POST %s: read the reply: %w", path, err)
	}
	if response.Close {
		h.close()
	}
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("POST %s: the server answered %s: %s", path, response.Status, answer[:min(len(answer), maxShown)])
	}
	return response.Header, answer, nil
}

// open makes the connection if there is none.
func (h *httpServer) open(ctx context.Context) error {
	if h.conn != nil {
		return nil
	}
	address := h.URL.Host
	if h.URL.Port() == "" {
		address = net.JoinHostPort(h.URL.Hostname(), h.URL.Scheme) // by the name of the port
	}
	var conn net.Conn
	var err error
	if h.URL.Scheme == "https" {
		conn, err = (&tls.Dialer{}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", h.URL.Host, err)
	}
	h.conn, h.in, h.out = conn, bufio.NewReader(conn), bufio.NewWriter(conn)
	return nil
}
