// SPDX-License-Identifier: Apache-2.0

package sessionbench

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
	"strings"
	"time"
)

// The protocol has two versions, whose texts docs/operations/session.md lists.
const (
	keyAgreement = "ECDH_P256"
	encAlg       = "A256GCM"
	method       = "POST"
	kidPrefix    = "session:"
	ivSize       = 12
	tagSize      = 16
	keySize      = 32
	// askedLifetime is ttlSec of a new session, in seconds.
	askedLifetime = 3600
)

// initRequest is the request of a client for a new session.
type initRequest struct {
	clientPublicKey, nonce, timestamp string
	clientID                          string // empty in version 1
}

// initReply is the server's reply to an initRequest.
type initReply struct{ id, serverPublicKey string }

// message is an encrypted request or reply. The headers of the version that is not used are
// empty.
type message struct {
	path, kid, encAlg              string
	iv, tag, aad, nonce, timestamp string // version 1
	idempotencyKey, clientID       string // version 2
	body                           []byte
}

// peer is the client's side of a session.
type peer struct {
	id, clientID string
	gcm          cipher.AEAD
}

// newInit makes a key pair and the request for a session with it.
func newInit(clientID string) (*ecdh.PrivateKey, *initRequest, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return own, &initRequest{
		clientPublicKey: encode(own.PublicKey().Bytes()), nonce: newUUID(), timestamp: now(), clientID: clientID,
	}, nil
}

// derive computes the key of a session.
func derive(own *ecdh.PrivateKey, clientID string, reply *initReply) (*peer, error) {
	point, err := base64.StdEncoding.DecodeString(reply.serverPublicKey)
	if err != nil {
		return nil, fmt.Errorf("serverPublicKey of the server is not base64: %w", err)
	}
	server, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return nil, errors.New("serverPublicKey of the server is not a point on P-256")
	}
	secret, err := own.ECDH(server)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	last := "AUTH"
	if clientID != "" {
		last = clientID
	}
	key, err := hkdf.Key(sha256.New, secret, []byte(reply.id), "SESSION|"+encAlg+"|"+last, keySize)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	return &peer{reply.id, clientID, gcm}, err
}

// seal encrypts a request to a path.
func (p *peer) seal(path string, plaintext []byte) *message {
	m := &message{path: path, kid: kidPrefix + p.id, encAlg: encAlg}
	nonce, timestamp := newUUID(), now()
	if p.clientID != "" {
		m.idempotencyKey, m.clientID = timestamp+"."+nonce, p.clientID
		m.body = p.gcm.Seal(nil, nil, plaintext, []byte(strings.Join([]string{timestamp, nonce, m.kid, p.clientID}, "|")))
		return m
	}
	m.nonce, m.timestamp = nonce, timestamp
	aad := []byte(strings.Join([]string{method, path, timestamp, nonce, m.kid}, "|"))
	sealed := p.gcm.Seal(nil, nil, plaintext, aad)
	end := len(sealed) - tagSize
	m.iv, m.tag, m.aad = encode(sealed[:ivSize]), encode(sealed[end:]), encode(aad)
	m.body = base64.StdEncoding.AppendEncode(nil, sealed[ivSize:end])
	return m
}

// open decrypts a reply to a request to a path.
func (p *peer) open(path string, m *message) ([]byte, error) {
	sealed := m.body
	var aad string
	if p.clientID != "" {
		timestamp, nonce, _ := strings.Cut(m.idempotencyKey, ".")
		aad = strings.Join([]string{timestamp, nonce, m.kid, p.clientID}, "|")
	} else {
		var err error
		if sealed, err = joined(m.iv, string(m.body), m.tag); err != nil {
			return nil, fmt.Errorf("the reply has X-IV, X-Tag or a body that is not base64: %w", err)
		}
		aad = strings.Join([]string{"200", path, m.timestamp, m.nonce, m.kid}, "|")
	}
	plaintext, err := p.gcm.Open(nil, nil, sealed, []byte(aad))
	if err != nil {
		return nil, errors.New("the reply is not authentic")
	}
	return plaintext, nil
}

// joined decodes texts in base64 one after the other.
func joined(texts ...string) (all []byte, err error) {
	for _, text := range texts {
		if all, err = base64.StdEncoding.AppendDecode(all, []byte(text)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func now() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

// newUUID returns a UUID of version 4 (RFC 9562, section 5.4), as the protocol's clients send.
func newUUID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never returns an error
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
}
