// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/leak"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// maxReply is the size in bytes of the largest reply that is read. Servers take requests of at
// most 32 MiB, so no reply is much larger.
const maxReply = 33 << 20

// errRefused means that the server does not accept the content of a request (status 400).
var errRefused = fmt.Errorf("%w: the server refuses the request", keys.ErrUnusable)

// session is a connection to a server. One request uses it at a time.
type session struct {
	manager  *manager
	endpoint string // scheme, host and port
	raw      net.Conn
	http     *http.Transport
	// version is the version that the server has reported.
	version string
}

// dial connects to a server.
func (m *manager) dial(ctx context.Context, endpoint string) (*session, error) {
	where, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("openbao: %w", err) // parseEndpoint has accepted it
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", where.Host)
	if err != nil {
		return nil, fmt.Errorf("%w: connect to %s: %w", keys.ErrUnavailable, endpoint, err)
	}
	if where.Scheme == "https" {
		if raw, err = m.tls.Handshake(ctx, raw, where.Hostname()); err != nil {
			return nil, fmt.Errorf("%w: connect to %s: %w", kindOfHandshake(ctx, err), endpoint, err)
		}
	}
	s := &session{manager: m, endpoint: endpoint, raw: raw}
	var once sync.Once
	connect := func(context.Context, string, string) (conn net.Conn, err error) {
		err = errors.New("the server closed the connection")
		once.Do(func() { conn, err = &connection{raw}, nil })
		return conn, err
	}
	s.http = &http.Transport{
		DialContext: connect, DialTLSContext: connect,
		MaxConnsPerHost: 1, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
	}
	return s, nil
}

// connection is the connection that net/http writes to. It copies the body of a request through a
// buffer that it clears, because net/http would use a buffer that nobody clears.
type connection struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (c *connection) ReadFrom(body io.Reader) (int64, error) {
	buffer := make([]byte, 4<<10)
	defer clear(buffer)
	// Hide ReadFrom and WriteTo of both ends, which io.CopyBuffer would use instead of the
	// buffer.
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, struct{ io.Reader }{body}, buffer)
}

// kindOfHandshake returns ErrDenied if either side does not accept the other's certificate.
func kindOfHandshake(ctx context.Context, err error) error {
	if ctx.Err() == nil && tlsprovider.Refused(err) {
		return keys.ErrDenied
	}
	return keys.ErrUnavailable
}

// Close implements pool.Conn.
func (s *session) Close() {
	s.http.CloseIdleConnections()
	_ = s.raw.Close() // an error could not be handled
}

// Ping implements pool.Conn.
func (s *session) Ping(ctx context.Context) error {
	_, err := s.health(ctx)
	return err
}

// health returns the version of a server that serves. A standby serves too, because it
// forwards requests.
func (s *session) health(ctx context.Context) (version string, err error) {
	var reply struct {
		Version string `json:"version"`
	}
	err = s.send(ctx, http.MethodGet, "sys/health?standbyok=true&perfstandbyok=true", "", nil, &reply)
	if err == nil {
		s.version = shortVersion(reply.Version)
	}
	return reply.Version, err
}

// maxVersion is the maximum size in bytes of a server's version.
const maxVersion = 32

// shortVersion returns the beginning of a version, in printable ASCII.
func shortVersion(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, text[:min(len(text), maxVersion)])
}

// ServerVersion implements pool.Versioned.
func (s *session) ServerVersion() string { return s.version }

// call makes a request as the broker. path has only necessary escapes. If body is not nil, it is
// JSON. call makes a copy of body, and clears the copy.
func (s *session) call(ctx context.Context, method, path string, body []byte, reply any) error {
	token, fresh, err := s.manager.login.token(ctx, s)
	if err != nil {
		return err
	}
	err = s.send(ctx, method, path, token, body, reply)
	if errors.Is(err, keys.ErrDenied) && !fresh && s.manager.login.drop(token) {
		if token, _, err = s.manager.login.token(ctx, s); err == nil {
			err = s.send(ctx, method, path, token, body, reply)
		}
	}
	return err
}

func (s *session) send(ctx context.Context, method, path, token string, body []byte, reply any) error {
	var content io.Reader
	if body != nil {
		content = &secretBody{rest: bytes.Clone(body)}
	}
	request, err := http.NewRequestWithContext(ctx, method, s.endpoint+"/v1/"+path, content)
	if err != nil {
		return fmt.Errorf("%w: %w", keys.ErrUnusable, err)
	}
	request.ContentLength = int64(len(body))
	request.Header.Set("X-Vault-Request", "true") // agents between the broker and the server may demand it
	if token != "" {
		request.Header.Set("X-Vault-Token", token)
	}
	if namespace := s.manager.namespace; namespace != "" {
		request.Header.Set("X-Vault-Namespace", namespace)
	}
	what, _, _ := strings.Cut(path, "?")
	response, err := s.http.RoundTrip(request)
	if err != nil {
		return s.unavailable(ctx, what, err)
	}
	defer response.Body.Close()
	data, err := readReply(response)
	defer clear(data)
	switch {
	case err != nil:
		return s.unavailable(ctx, what, err)
	case response.StatusCode >= 300:
		return s.refused(what, response.StatusCode, data, []byte(token), body)
	case reply == nil:
		return nil
	}
	if err := json.Unmarshal(data, reply); err != nil {
		// The error is not shown, because it may quote the reply.
		return fmt.Errorf("%w: %s at %s: found a reply that is not the JSON of this API", keys.ErrUnusable, what, s.endpoint)
	}
	return nil
}

func (s *session) unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s at %s: %w", keys.ErrUnavailable, what, s.endpoint, err)
}

// refused returns the error of a reply that is not a success. The text of the reply is left out
// if it quotes the request.
func (s *session) refused(what string, status int, data []byte, sent ...[]byte) error {
	var kind error
	switch status {
	case http.StatusBadRequest:
		kind = errRefused
	case http.StatusForbidden, http.StatusUnauthorized:
		kind = keys.ErrDenied
	case http.StatusNotFound:
		kind = keys.ErrNotFound
	case http.StatusTooManyRequests:
		kind = keys.ErrThrottled
	case http.StatusRequestEntityTooLarge:
		kind = keys.ErrUnusable
	default:
		// 5xx means that the server is sealed, not ready or broken. 412 means that it lags behind
		// another server. 3xx means that it is a standby that does not forward requests.
		kind = keys.ErrUnavailable
	}
	var reply struct {
		Errors []string `json:"errors"`
		Sealed bool     `json:"sealed"`
	}
	_ = json.Unmarshal(data, &reply) // proxies answer with other content
	reason := strings.Join(strings.Fields(strings.Join(reply.Errors, "; ")), " ")
	if reply.Sealed {
		reason = "the server is sealed"
	}
	const longest = 200
	// The comparison with a request takes as long as both are, so it has no more of the reason than
	// what is shown, and as much again.
	if leak.In(reason[:min(len(reason), 2*longest)], sent...) {
		reason = "the reason quotes the request and is not shown"
	}
	if len(reason) > longest {
		reason = reason[:longest] + "…"
	}
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Errorf("%w: %s at %s: status %d%s", kind, what, s.endpoint, status, reason)
}

func readReply(response *http.Response) ([]byte, error) {
	switch n := response.ContentLength; {
	case n > maxReply:
		return nil, fmt.Errorf("found a reply of %d bytes, expected at most %d", n, maxReply)
	case n >= 0:
		data := make([]byte, n) // io.ReadAll would leave copies of a key
		_, err := io.ReadFull(response.Body, data)
		return data, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err == nil && len(data) > maxReply {
		err = fmt.Errorf("found a reply of more than %d bytes", maxReply)
	}
	return data, err
}

// secretBody is the body of a request. Close clears it. The transport may close a body while
// it reads from it.
type secretBody struct {
	mu   sync.Mutex
	rest []byte
}

// Read implements io.Reader.
func (b *secretBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	clear(b.rest[:n])
	b.rest = b.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *secretBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.rest)
	b.rest = nil
	return nil
}
