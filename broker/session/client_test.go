// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

// clock is a clock that the tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func (c *clock) add(d time.Duration) { c.set(c.read().Add(d)) }

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// theOwner is the owner of sessions, unless a test says otherwise.
var theOwner = Owner{Caller: callers.Caller{Container: "web", UID: 1000, Known: true}, Socket: "web", Profile: "P"}

// policy compiles a section with more fields.
func policy(t testing.TB, more string) *profile.SessionPolicy {
	t.Helper()
	text := "- Name: P\n  API: {Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM" + more + "}}\n"
	set, problems := profile.Compile(profile.FileName, []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	compiled, _ := set.Lookup("P")
	return compiled.Session()
}

func newStore(t testing.TB) (*Store, *clock) {
	t.Helper()
	c := &clock{now: noon}
	s := NewStore(func(error) {})
	s.now, s.every = c.read, time.Hour // no timer: the tests call sweep
	t.Cleanup(s.Close)
	return s, c
}

// client is a client of the protocol that shares no code with the broker.
type client struct {
	id, clientID string
	key          []byte
	clock        *clock
	numbers      int
}

func connect(t testing.TB, s *Store, c *clock, p *profile.SessionPolicy, clientID string) *client {
	t.Helper()
	return connectAs(t, s, c, p, clientID, theOwner)
}

func connectAs(t testing.TB, s *Store, c *clock, p *profile.SessionPolicy, clientID string, owner Owner) *client {
	t.Helper()
	made, _, err := tryConnect(t, s, c, p, clientID, owner)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func tryConnect(t testing.TB, s *Store, c *clock, p *profile.SessionPolicy, clientID string, owner Owner) (*client, Begun, error) {
	t.Helper()
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := s.Begin(t.Context(), owner, p, Init{
		KeyAgreement: "ECDH_P256", ClientPublicKey: base64.StdEncoding.EncodeToString(own.PublicKey().Bytes()), TTL: time.Hour,
		Nonce: "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01", Timestamp: strconv.FormatInt(c.read().UnixMilli(), 10), ClientID: clientID,
	})
	if err != nil {
		return nil, begun, err
	}
	point, err := base64.StdEncoding.DecodeString(begun.ServerPublicKey)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := own.ECDH(server)
	if err != nil {
		t.Fatal(err)
	}
	info := "SESSION|A256GCM|AUTH"
	if clientID != "" {
		info = "SESSION|A256GCM|" + clientID
	}
	key, err := hkdf.Key(sha256.New, secret, []byte(begun.ID), info, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &client{id: begun.ID, clientID: clientID, key: key, clock: c}, begun, nil
}

func (c *client) gcm() cipher.AEAD {
	block, err := aes.NewCipher(c.key)
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return gcm
}

// nonce returns a new UUID.
func (c *client) nonce() string {
	c.numbers++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", c.numbers, c.numbers)
}

// request encrypts a request that the client sends at a time by its own clock.
func (c *client) request(at time.Time, plaintext string) Request {
	return c.requestTo("/transaction/purchase", at, c.nonce(), plaintext)
}

func (c *client) requestTo(path string, at time.Time, nonce, plaintext string) Request {
	kid, timestamp := "session:"+c.id, strconv.FormatInt(at.UnixMilli(), 10)
	r := Request{Method: "POST", Path: path, Kid: kid, EncAlg: "A256GCM"}
	if c.clientID != "" {
		r.IdempotencyKey, r.ClientID = timestamp+"."+nonce, c.clientID
		r.Body = c.gcm().Seal(nil, nil, []byte(plaintext), []byte(timestamp+"|"+nonce+"|"+kid+"|"+c.clientID))
		return r
	}
	aad := "POST|" + path + "|" + timestamp + "|" + nonce + "|" + kid
	sealed := c.gcm().Seal(nil, nil, []byte(plaintext), []byte(aad))
	text := base64.StdEncoding.EncodeToString
	r.IV, r.Tag, r.AAD = text(sealed[:12]), text(sealed[len(sealed)-16:]), text([]byte(aad))
	r.Nonce, r.Timestamp, r.Body = nonce, timestamp, []byte(text(sealed[12:len(sealed)-16]))
	return r
}

// read decrypts a reply, and checks what is authenticated.
func (c *client) read(path string, r Reply) (string, error) {
	kid := "session:" + c.id
	if r.Kid != kid || r.EncAlg != "A256GCM" {
		return "", errors.New("the reply is of another session or cipher")
	}
	if c.clientID != "" {
		var timestamp, nonce string
		if _, err := fmt.Sscanf(r.IdempotencyKey, "%13s.%36s", &timestamp, &nonce); err != nil {
			return "", err
		}
		plaintext, err := c.gcm().Open(nil, nil, r.Body, []byte(timestamp+"|"+nonce+"|"+kid+"|"+c.clientID))
		return string(plaintext), err
	}
	var sealed []byte
	for _, part := range []string{r.IV, string(r.Body), r.Tag} {
		decoded, err := base64.StdEncoding.DecodeString(part)
		if err != nil {
			return "", err
		}
		sealed = append(sealed, decoded...)
	}
	aad := "200|" + path + "|" + r.Timestamp + "|" + r.Nonce + "|" + kid
	if r.AAD != base64.StdEncoding.EncodeToString([]byte(aad)) {
		return "", errors.New("the reply has another X-AAD")
	}
	plaintext, err := c.gcm().Open(nil, nil, sealed, []byte(aad))
	return string(plaintext), err
}
