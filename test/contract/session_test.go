// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/go/session"
)

// sessionClient is the other side of an encrypted session: the program that sends requests to the application.
type sessionClient interface {
	// before returns the values that the application received from this client for an operation.
	before(operation string, request map[string]any) (map[string]any, error)
	// after reads the values that the application received from the broker.
	after(operation string, reply map[string]any) error
}

// newSessionClient returns a client for one session, in the version "v1" or "native".
func newSessionClient(version string, values map[string]any) (sessionClient, error) {
	switch version {
	case "v1":
		key, err := ecdh.P256().GenerateKey(rand.Reader)
		return &sessionV1{key: key}, err
	case "native":
		public, _ := values["session_public"].(crypto.PublicKey)
		handshake, err := session.Begin(session.Config{
			Profile: "Native", Agreement: session.HPKEP256, PublicKey: public, SignatureAlgorithm: "ecdsa-with-sha-256", Lifetime: 10 * time.Minute,
		})
		return &sessionNative{handshake: handshake}, err
	}
	return nil, fmt.Errorf("found the session %q, expected v1 or native", version)
}

// runInSession is what a step with a session does around its call.
func (s Step) runInSession(saved, request map[string]any) (client sessionClient, filled map[string]any, err error) {
	client, begun := saved["the session"].(sessionClient)
	if !begun {
		if client, err = newSessionClient(s.Session, saved); err != nil {
			return nil, nil, err
		}
		saved["the session"] = client
	}
	added, err := client.before(s.Operation, request)
	filled = maps.Clone(request)
	maps.Copy(filled, added)
	return client, filled, err
}

// text returns a field that is a text.
func text(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}

// octets returns a field of bytes.
func octets(fields map[string]any, name string) []byte {
	content, _ := base64.StdEncoding.DecodeString(text(fields, name)) // a value that is not base64 differs from the expected value
	return content
}

// exchanged has the values of the last request that both versions remember.
type exchanged struct {
	id   string
	open map[string]any // the reply of OpenRequest or RekeySession
}

// fields returns the fields of SealReply or CloseSession.
func (e exchanged) fields(operation string) map[string]any {
	if operation == "CloseSession" {
		return map[string]any{"sessionId": e.id}
	}
	return map[string]any{"sessionId": e.open["sessionId"], "clientPath": e.open["clientPath"], "sequence": e.open["sequence"]}
}

// sessionV1 is a client of version 1 of the protocol.
type sessionV1 struct {
	exchanged
	key   *ecdh.PrivateKey
	gcm   cipher.AEAD
	path  string
	count int
}

// fresh returns a nonce and a timestamp.
func (c *sessionV1) fresh() (nonce, timestamp string) {
	c.count++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", c.count, time.Now().UnixNano()&0xffffffffffff), strconv.FormatInt(time.Now().UnixMilli(), 10)
}

func (c *sessionV1) before(operation string, request map[string]any) (map[string]any, error) {
	nonce, timestamp := c.fresh()
	base := base64.StdEncoding.EncodeToString
	switch operation {
	case "InitSession":
		return map[string]any{
			"keyAgreement": "ECDH_P256", "clientPublicKey": base(c.key.PublicKey().Bytes()), "nonce": nonce, "timestamp": timestamp,
		}, nil
	case "OpenRequest":
		c.path = text(request, "path")
		kid := "session:" + c.id
		aad := text(request, "method") + "|" + c.path + "|" + timestamp + "|" + nonce + "|" + kid
		sealed := c.gcm.Seal(nil, nil, []byte("4711 boxes"), []byte(aad))
		return map[string]any{
			"kid": kid, "encAlg": "A256GCM", "nonce": nonce, "timestamp": timestamp, "aad": base([]byte(aad)),
			"iv": base(sealed[:12]), "tag": base(sealed[len(sealed)-16:]), "body": base([]byte(base(sealed[12 : len(sealed)-16]))),
		}, nil
	}
	return c.fields(operation), nil
}

func (c *sessionV1) after(operation string, reply map[string]any) error {
	switch operation {
	case "InitSession":
		c.id = text(reply, "sessionId")
		public, err := ecdh.P256().NewPublicKey(octets(reply, "serverPublicKey"))
		if err != nil {
			return err
		}
		secret, err := c.key.ECDH(public)
		if err != nil {
			return err
		}
		key, err := hkdf.Key(sha256.New, secret, []byte(c.id), "SESSION|A256GCM|AUTH", 32)
		if err != nil {
			return err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		c.gcm, err = cipher.NewGCMWithRandomNonce(block)
		return err
	case "OpenRequest":
		c.open = reply
	case "SealReply":
		var sealed []byte
		for _, part := range []string{text(reply, "iv"), string(octets(reply, "body")), text(reply, "tag")} {
			content, err := base64.StdEncoding.DecodeString(part)
			if err != nil {
				return err
			}
			sealed = append(sealed, content...)
		}
		aad := "200|" + c.path + "|" + text(reply, "timestamp") + "|" + text(reply, "nonce") + "|" + text(reply, "kid")
		if found := string(octets(reply, "aad")); found != aad {
			return fmt.Errorf("reply.aad is %q, expected %q", found, aad)
		}
		return expectThanks(c.gcm.Open(nil, nil, sealed, []byte(aad)))
	}
	return nil
}

// expectThanks compares the decrypted reply of the application.
func expectThanks(plaintext []byte, err error) error {
	if err != nil {
		return fmt.Errorf("the client of the session cannot read the reply: %w", err)
	}
	if string(plaintext) != "thank you" {
		return fmt.Errorf("the client of the session reads %q, expected the reply of the application", plaintext)
	}
	return nil
}

// sessionNative is a client of a native version.
type sessionNative struct {
	exchanged
	handshake *session.Handshake
	session   *session.Session
	sent      *session.Request
}

func (c *sessionNative) before(operation string, request map[string]any) (map[string]any, error) {
	var err error
	switch operation {
	case "InitSession":
		begin := c.handshake.Request()
		return map[string]any{"keyAgreement": begin.KeyAgreement, "clientPublicKey": begin.ClientPublicKey, "ttlSec": begin.TTLSec}, nil
	case "OpenRequest":
		c.sent, err = c.session.Seal(text(request, "method"), text(request, "path"), []byte("4711 boxes"))
	case "RekeySession":
		c.sent, err = c.session.Rekey(text(request, "method"), text(request, "path"))
	default:
		return c.fields(operation), nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"kid": c.sent.Kid, "encAlg": c.sent.EncAlg, "timestamp": c.sent.Timestamp, "sequence": c.sent.Sequence,
		"body": base64.StdEncoding.EncodeToString(c.sent.Body),
	}, nil
}

func (c *sessionNative) after(operation string, reply map[string]any) error {
	switch operation {
	case "InitSession":
		var answer session.InitReply
		content, err := json.Marshal(reply)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(content, &answer); err != nil {
			return err
		}
		c.session, err = c.handshake.Finish(answer)
		c.id = answer.SessionID
		return err
	case "OpenRequest", "RekeySession":
		c.open = reply
	case "SealReply":
		return expectThanks(c.session.Open(c.sent, octets(reply, "body")))
	}
	return nil
}
