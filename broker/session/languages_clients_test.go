// SPDX-License-Identifier: Apache-2.0

//go:build clients

package session

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// languages are the commands of clients that share no code with the broker or with each other: the Python
// package cryptography, which computes with OpenSSL; WebCrypto of Node.js; and the JCA of Java.
func languages(t *testing.T) map[string]*exec.Cmd {
	t.Helper()
	folder, err := environment.PythonPackage{Name: "cryptography", Version: "48.0.0"}.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]*exec.Cmd{
		"Python": exec.CommandContext(t.Context(), "python3", "testdata/client.py"),
		"Node":   exec.CommandContext(t.Context(), "node", "testdata/client.mjs"),
		"Java":   exec.CommandContext(t.Context(), "java", "testdata/Client.java"),
	}
	commands["Python"].Env = append(os.Environ(), "PYTHONPATH="+folder)
	return commands
}

// given is the input of all clients. Its fields are texts, so that a program without a JSON parser can read it.
type given map[string]string

// made is what a client computes from the input.
type made struct {
	Request
	Key, ReplyKey, NextSecret []byte
	Opened                    string
}

const (
	givenPath  = "/transaction/purchase"
	givenNonce = "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01"
)

// TestClientsInOtherLanguagesMakeTheSameBytes gives all clients the same key pair, IV, time and nonce. So all of them make the same
// bytes as the client of the other tests.
func TestClientsInOtherLanguagesMakeTheSameBytes(t *testing.T) {
	for version, prepare := range map[string]func(*testing.T, *Store, *clock) (given, made){
		"1":      func(t *testing.T, s *Store, c *clock) (given, made) { return prepareOld(t, s, c, "1", "") },
		"2":      func(t *testing.T, s *Store, c *clock) (given, made) { return prepareOld(t, s, c, "2", "shop") },
		"native": prepareNative,
	} {
		s, now := newStore(t)
		in, want := prepare(t, s, now)
		want.Opened = "paid"
		input, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		for language, cmd := range languages(t) {
			t.Run("version "+version+" in "+language, func(t *testing.T) {
				var stderr bytes.Buffer
				cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
				output, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, &stderr)
				}
				var got made
				if err := json.Unmarshal(output, &got); err != nil {
					t.Fatalf("%v\n%s", err, output)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("made\n%+v\nwant\n%+v", got, want)
				}
			})
		}
		p := nativePolicy(t, "")
		if version != "native" {
			p = policy(t, "")
		}
		if opened, err := s.Open(t.Context(), theOwner, p, &want.Request); err != nil || string(opened.Plaintext) != "buy" {
			t.Errorf("version %s: opened %q, %v", version, opened.Plaintext, err)
		}
	}
}

// prepareOld begins a session of version 1 or 2, and seals a reply. It returns what a client needs to
// compute the same, and what it has to make.
func prepareOld(t *testing.T, s *Store, now *clock, version, clientID string) (given, made) {
	t.Helper()
	p := policy(t, "")
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	timestamp := strconv.FormatInt(noon.UnixMilli(), 10)
	begun, err := s.Begin(t.Context(), theOwner, p, Init{
		KeyAgreement: "ECDH_P256", ClientPublicKey: text(own.PublicKey().Bytes()), TTL: time.Hour, Nonce: "n", Timestamp: timestamp, ClientID: clientID,
	})
	if err != nil {
		t.Fatal(err)
	}
	var key [keySize]byte
	if s.find(theOwner, p, begun.ID, &key) == nil {
		t.Fatal("there is no session")
	}
	reply, err := s.Seal(t.Context(), theOwner, p, begun.ID, givenPath, []byte("paid"))
	if err != nil {
		t.Fatal(err)
	}
	c := &client{id: begun.ID, clientID: clientID, key: key[:], clock: now}
	request := c.requestTo(givenPath, noon, givenNonce, "buy")
	iv := request.IV
	if version == "2" {
		iv = text(request.Body[:12])
	}
	return given{
		"version": version, "scalar": hex.EncodeToString(own.Bytes()), "clientPublicKey": text(own.PublicKey().Bytes()), "serverPublicKey": begun.ServerPublicKey,
		"id": begun.ID, "clientId": clientID, "path": givenPath, "timestamp": timestamp, "nonce": givenNonce, "iv": iv, "plaintext": "buy", "sequence": "",
		"replyIV": reply.IV, "replyTag": reply.Tag, "replyAAD": reply.AAD, "replyNonce": reply.Nonce, "replyTimestamp": reply.Timestamp,
		"replyIdempotencyKey": reply.IdempotencyKey, "replyBody": text(reply.Body),
	}, made{Request: request, Key: key[:], ReplyKey: key[:], NextSecret: []byte{}}
}

// prepareNative does the same with a native session.
func prepareNative(t *testing.T, s *Store, now *clock) (given, made) {
	t.Helper()
	p := nativePolicy(t, "")
	own, err := hpke.DHKEM(ecdh.P256()).GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := own.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	public := text(own.PublicKey().Bytes())
	begun, err := s.BeginNative(theOwner, p, Init{KeyAgreement: "HPKE_P256", ClientPublicKey: public, TTL: 1800 * time.Second}, signTranscript)
	if err != nil {
		t.Fatal(err)
	}
	var secret [keySize]byte
	if s.find(theOwner, p, begun.ID, &secret) == nil {
		t.Fatal("there is no session")
	}
	c := &nativeClient{id: begun.ID, secret: secret[:], clock: now, epoch: 1}
	request := c.next("buy")
	reply, err := s.SealNative(theOwner, p, begun.ID, givenPath, request.Sequence, []byte("paid"))
	if err != nil {
		t.Fatal(err)
	}
	return given{
		"version": "native", "scalar": hex.EncodeToString(scalar), "clientPublicKey": public, "serverPublicKey": begun.ServerPublicKey, "id": begun.ID,
		"profile": "P", "lifetime": "1800", "clientId": "", "path": givenPath, "timestamp": request.Timestamp, "nonce": "", "iv": text(request.Body[:12]),
		"plaintext": "buy", "sequence": request.Sequence, "replyBody": text(reply.Body),
	}, made{Request: request, Key: derive(secret[:], "request"), ReplyKey: derive(secret[:], "reply"), NextSecret: derive(secret[:], "rekey")}
}
