// SPDX-License-Identifier: Apache-2.0

// Package sessionclient is a client of encrypted sessions by HTTP, versions 1 and 2, for tests.
package sessionclient

import (
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
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// timeLimit is far above what a request takes; only a failure reaches it.
const timeLimit = time.Minute

// Client is a client of a server by HTTP. Its session has a key if Connect made it.
type Client struct {
	// HTTP makes the requests, and URL has scheme and host of the server.
	HTTP *http.Client
	URL  string
	// ID is the id of the session. ClientID is empty for version 1 of the protocol.
	ID, ClientID string

	t     testing.TB
	gcm   cipher.AEAD
	count atomic.Int32
}

// New returns a client without a session. It speaks HTTP/1.1, or HTTP/2 without TLS.
func New(t testing.TB, server string, h2 bool) *Client {
	var protocols http.Protocols
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	transport := &http.Transport{Protocols: &protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{t: t, HTTP: &http.Client{Transport: transport, Timeout: timeLimit}, URL: server}
}

// must returns a value that cannot be missing in a test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Connect begins a session. clientID is empty for version 1.
func (c *Client) Connect(clientID string) *Client {
	c.t.Helper()
	c.ClientID = clientID
	own := must(ecdh.P256().GenerateKey(rand.Reader))
	answer, body := c.Do(c.InitRequest(base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())))
	var begun struct {
		SessionID, ServerPublicKey, EncAlg string
		ExpiresInSec                       int
	}
	if err := json.Unmarshal(body, &begun); err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s (%v)", answer.Status, body, err)
	}
	if begun.EncAlg != "A256GCM" || begun.ExpiresInSec != 1800 {
		c.t.Fatalf("got %+v", begun)
	}
	secret := must(own.ECDH(must(ecdh.P256().NewPublicKey(must(base64.StdEncoding.DecodeString(begun.ServerPublicKey))))))
	info := "SESSION|A256GCM|AUTH"
	if clientID != "" {
		info = "SESSION|A256GCM|" + clientID
	}
	c.ID = begun.SessionID
	c.gcm = must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(must(hkdf.Key(sha256.New, secret, []byte(c.ID), info, 32))))))
	return c
}

// InitRequest returns a request for a session. publicKey is in base64.
func (c *Client) InitRequest(publicKey string) *http.Request {
	r := must(http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.URL+"/session/init",
		strings.NewReader(`{"keyAgreement":"ECDH_P256","clientPublicKey":"`+publicKey+`","ttlSec":1800}`)))
	timestamp, nonce := strconv.FormatInt(time.Now().UnixMilli(), 10), c.nonce()
	if c.ClientID == "" {
		r.Header.Set("X-Nonce", nonce)
		r.Header.Set("X-Timestamp", timestamp)
	} else {
		r.Header.Set("X-Idempotency-Key", timestamp+"."+nonce)
		r.Header.Set("X-ClientId", c.ClientID)
	}
	return r
}

func (c *Client) nonce() string {
	n := c.count.Add(1)
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n)
}

// Request encrypts a request.
func (c *Client) Request(method, path, plaintext string) *http.Request {
	return c.RequestAt(time.Now(), method, path, plaintext)
}

// RequestAt encrypts a request with a time.
func (c *Client) RequestAt(at time.Time, method, path, plaintext string) *http.Request {
	kid, timestamp, nonce := "session:"+c.ID, strconv.FormatInt(at.UnixMilli(), 10), c.nonce()
	headers := http.Header{}
	var body []byte
	if c.ClientID == "" {
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
		headers.Set("X-ClientId", c.ClientID)
		body = c.gcm.Seal(nil, nil, []byte(plaintext), []byte(timestamp+"|"+nonce+"|"+kid+"|"+c.ClientID))
	}
	r := must(http.NewRequestWithContext(c.t.Context(), method, c.URL, bytes.NewReader(body)))
	r.URL.Opaque = path // the text is sent unchanged
	r.Header = headers
	r.Header.Set("X-Kid", kid)
	r.Header.Set("X-Enc-Alg", "A256GCM")
	r.Header.Set("Content-Type", "application/octet-stream")
	return r
}

// Answer is the answer to a request, whose body was read.
type Answer struct {
	StatusCode    int
	Status, Proto string
	ProtoMajor    int
	Header        http.Header
}

// ReadAnswer reads an answer as a whole.
func ReadAnswer(t testing.TB, from *http.Response) (Answer, []byte) {
	t.Helper()
	defer from.Body.Close()
	body, err := io.ReadAll(from.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{from.StatusCode, from.Status, from.Proto, from.ProtoMajor, from.Header}, body
}

// Do sends a request and reads the answer.
func (c *Client) Do(r *http.Request) (Answer, []byte) {
	c.t.Helper()
	response, err := c.HTTP.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return ReadAnswer(c.t, response)
}

// Read decrypts a reply to a request with a path.
func (c *Client) Read(path string, from Answer, body []byte) (string, error) {
	h, kid := from.Header.Get, "session:"+c.ID
	if h("X-Kid") != kid || h("X-Enc-Alg") != "A256GCM" {
		return "", fmt.Errorf("%s is no encrypted reply: %.200s", from.Status, body)
	}
	if c.ClientID != "" {
		timestamp, nonce, _ := strings.Cut(h("X-Idempotency-Key"), ".")
		plaintext, err := c.gcm.Open(nil, nil, body, []byte(timestamp+"|"+nonce+"|"+kid+"|"+c.ClientID))
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

// Buy sends an encrypted request and returns the status and the decrypted reply.
func (c *Client) Buy(path, plaintext string) (int, string) {
	c.t.Helper()
	answer, body := c.Do(c.Request(http.MethodPost, path, plaintext))
	text, err := c.Read(path, answer, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, text
}
