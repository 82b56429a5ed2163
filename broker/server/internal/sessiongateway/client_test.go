// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// client is a client of the application by HTTP.
type client struct {
	t            testing.TB
	http         *http.Client
	url          string
	id, clientID string
	gcm          cipher.AEAD
	count        atomic.Int32
}

// newHTTPClient returns a client of HTTP/1.1 or of HTTP/2 without TLS.
func newHTTPClient(t testing.TB, h2 bool) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	transport := &http.Transport{Protocols: &protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: waitLimit}
}

// must returns a value that cannot be missing in a test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// connect begins a session. clientID is empty for version 1.
func connect(t testing.TB, f *fixture, clientID string, h2 bool) *client {
	t.Helper()
	return connectTo(t, newHTTPClient(t, h2), "http://"+f.address, clientID)
}

// connectTo begins a session at a server.
func connectTo(t testing.TB, through *http.Client, server, clientID string) *client {
	t.Helper()
	c := &client{t: t, http: through, url: server, clientID: clientID}
	own := must(ecdh.P256().GenerateKey(rand.Reader))
	answer, body := c.do(c.initRequest(base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())))
	var begun struct {
		SessionID, ServerPublicKey, EncAlg string
		ExpiresInSec                       int
	}
	if err := json.Unmarshal(body, &begun); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s (%v)", answer.Status, body, err)
	}
	if begun.EncAlg != "A256GCM" || begun.ExpiresInSec != 1800 {
		t.Fatalf("got %+v", begun)
	}
	secret := must(own.ECDH(must(ecdh.P256().NewPublicKey(must(base64.StdEncoding.DecodeString(begun.ServerPublicKey))))))
	info := "SESSION|A256GCM|AUTH"
	if clientID != "" {
		info = "SESSION|A256GCM|" + clientID
	}
	c.id = begun.SessionID
	c.gcm = must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(must(hkdf.Key(sha256.New, secret, []byte(c.id), info, 32))))))
	return c
}

func (c *client) initRequest(publicKey string) *http.Request {
	r := must(http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/session/init",
		strings.NewReader(`{"keyAgreement":"ECDH_P256","clientPublicKey":"`+publicKey+`","ttlSec":1800}`)))
	timestamp, nonce := strconv.FormatInt(time.Now().UnixMilli(), 10), c.nonce()
	if c.clientID == "" {
		r.Header.Set("X-Nonce", nonce)
		r.Header.Set("X-Timestamp", timestamp)
	} else {
		r.Header.Set("X-Idempotency-Key", timestamp+"."+nonce)
		r.Header.Set("X-ClientId", c.clientID)
	}
	return r
}

func (c *client) nonce() string {
	n := c.count.Add(1)
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n)
}

// request encrypts a request.
func (c *client) request(method, path, plaintext string) *http.Request {
	return c.requestAt(time.Now(), method, path, plaintext)
}

func (c *client) requestAt(at time.Time, method, path, plaintext string) *http.Request {
	kid, timestamp, nonce := "session:"+c.id, strconv.FormatInt(at.UnixMilli(), 10), c.nonce()
	headers := http.Header{}
	var body []byte
	if c.clientID == "" {
		aad := method + "|" + path + "|" + timestamp + "|" + nonce + "|" + kid
		sealed := c.gcm.Seal(nil, nil, []byte(plaintext), []byte(aad))
		text := base64.StdEncoding.EncodeToString
		headers.Set("X-IV", text(sealed[:12]))
		headers.Set("X-Tag", text(sealed[len(sealed)-16:]))
		headers.Set("X-AAD", text([]byte(aad)))
		headers.Set("X-Nonce", nonce)
		headers.Set("X-Timestamp", timestamp)
		body = []byte(text(sealed[12 : len(sealed)-16]))
	} else {
		headers.Set("X-Idempotency-Key", timestamp+"."+nonce)
		headers.Set("X-ClientId", c.clientID)
		body = c.gcm.Seal(nil, nil, []byte(plaintext), []byte(timestamp+"|"+nonce+"|"+kid+"|"+c.clientID))
	}
	r := must(http.NewRequestWithContext(c.t.Context(), method, c.url, bytes.NewReader(body)))
	r.URL.Opaque = path // which is sent as it is
	r.Header = headers
	r.Header.Set("X-Kid", kid)
	r.Header.Set("X-Enc-Alg", "A256GCM")
	r.Header.Set("Content-Type", "application/octet-stream")
	return r
}

// answer is the answer to a request, whose body was read.
type answer struct {
	StatusCode    int
	Status, Proto string
	ProtoMajor    int
	Header        http.Header
}

// readAnswer reads an answer as a whole.
func readAnswer(t testing.TB, from *http.Response) (answer, []byte) {
	t.Helper()
	defer from.Body.Close()
	body, err := io.ReadAll(from.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{from.StatusCode, from.Status, from.Proto, from.ProtoMajor, from.Header}, body
}

func (c *client) do(r *http.Request) (answer, []byte) {
	c.t.Helper()
	response, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return readAnswer(c.t, response)
}

// read decrypts a reply to a request with a path.
func (c *client) read(path string, from answer, body []byte) (string, error) {
	h, kid := from.Header.Get, "session:"+c.id
	if h("X-Kid") != kid || h("X-Enc-Alg") != "A256GCM" {
		return "", fmt.Errorf("%s is no encrypted reply: %.200s", from.Status, body)
	}
	if c.clientID != "" {
		timestamp, nonce, _ := strings.Cut(h("X-Idempotency-Key"), ".")
		plaintext, err := c.gcm.Open(nil, nil, body, []byte(timestamp+"|"+nonce+"|"+kid+"|"+c.clientID))
		return string(plaintext), err
	}
	var sealed []byte
	for _, part := range []string{h("X-IV"), string(body), h("X-Tag")} {
		decoded, err := base64.StdEncoding.DecodeString(part)
		if err != nil {
			return "", err
		}
		sealed = append(sealed, decoded...)
	}
	aad := "200|" + path + "|" + h("X-Timestamp") + "|" + h("X-Nonce") + "|" + kid
	if h("X-AAD") != base64.StdEncoding.EncodeToString([]byte(aad)) {
		return "", fmt.Errorf("the reply has another X-AAD: %s", h("X-AAD"))
	}
	plaintext, err := c.gcm.Open(nil, nil, sealed, []byte(aad))
	return string(plaintext), err
}

// buy sends an encrypted request and returns the status and the decrypted reply.
func (c *client) buy(path, plaintext string) (int, string) {
	c.t.Helper()
	answer, body := c.do(c.request(http.MethodPost, path, plaintext))
	text, err := c.read(path, answer, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, text
}

// doThrough sends a request through an address, whatever host its URL has.
func (c *client) doThrough(address string, r *http.Request) (answer, []byte) {
	c.t.Helper()
	conn := must((&net.Dialer{}).DialContext(c.t.Context(), "tcp", address))
	defer func() { _ = conn.Close() }()
	target := r.URL.Opaque
	if target == "" {
		target = r.URL.Path
	}
	body := must(io.ReadAll(r.Body))
	length := ""
	if len(body) > 0 {
		length = fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	must(fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n%s\r\n%s", r.Method, target, length, body))
	response, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		c.t.Fatal(err)
	}
	return readAnswer(c.t, response)
}
