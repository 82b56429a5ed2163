// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	"github.com/crypto-broker/crypto-broker-operator/clients/go/session"
)

// initNative begins a session through the broker.
func initNative(t *testing.T, client *cryptobroker.Client, agreement session.Agreement, key crypto.PublicKey) (*session.Session, error) {
	t.Helper()
	handshake, err := session.Begin(session.Config{Profile: "Native", Agreement: agreement, PublicKey: key, SignatureAlgorithm: "ed25519", Lifetime: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	asked := handshake.Request()
	begun, err := client.InitSession(withTimeout(t), cryptobroker.InitSessionRequest{
		Profile: "Native", KeyAgreement: asked.KeyAgreement, ClientPublicKey: asked.ClientPublicKey, TTLSeconds: asked.TTLSec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return handshake.Finish(session.InitReply{
		SessionID: begun.SessionID, ServerPublicKey: begun.ServerPublicKey, EncAlg: begun.EncAlg, ExpiresInSec: uint32(begun.ExpiresIn / time.Second), //nolint:gosec // an hour at most
		Signature: begun.Signature, SignatureAlgorithm: begun.SignatureAlgorithm,
	})
}

func toBroker(method, path string, r *session.Request) cryptobroker.OpenRequestRequest {
	return cryptobroker.OpenRequestRequest{
		Profile: "Native", Method: method, Path: path, Kid: r.Kid, EncAlg: r.EncAlg, Timestamp: r.Timestamp, Sequence: r.Sequence, Body: r.Body,
	}
}

func isInvalid(err error) bool {
	var refused *cryptobroker.Error
	return errors.As(err, &refused) && refused.Code == cryptobroker.CodeInvalidArgument
}

func TestANativeSessionFromBothSides(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		for agreement, protocol := range map[session.Agreement]string{session.HPKEP256: "session-hpke-p256", session.HPKEXWing: "session-hpke-x-wing"} {
			s, err := initNative(t, client, agreement, sessionsKey.Public())
			if err != nil {
				t.Fatal(err)
			}
			answer := func(to *session.Request, opened cryptobroker.OpenRequestResult, plaintext string) {
				t.Helper()
				reply, err := client.SealReply(withTimeout(t), cryptobroker.SealReplyRequest{
					Profile: "Native", SessionID: opened.SessionID, ClientPath: opened.ClientPath, Sequence: opened.Sequence, Plaintext: []byte(plaintext),
				})
				if err != nil || reply.Sequence != to.Sequence || reply.Kid != to.Kid || reply.EncAlg != to.EncAlg {
					t.Fatalf("%+v, %v", reply, err)
				}
				if got, err := s.Open(to, reply.Body); err != nil || string(got) != plaintext {
					t.Errorf("the reply is %q, %v", got, err)
				}
			}
			var before *session.Request
			for _, plaintext := range []string{"a book", "", strings.Repeat("large", 100<<10)} {
				request, err := s.Seal("POST", "/buy", []byte(plaintext))
				if err != nil {
					t.Fatal(err)
				}
				opened, err := client.OpenRequest(withTimeout(t), toBroker("POST", "/buy", request))
				if err != nil || string(opened.Plaintext) != plaintext || opened.Algorithm != protocol {
					t.Fatalf("opened %.100q by %s, %v", opened.Plaintext, opened.Algorithm, err)
				}
				if _, err := client.OpenRequest(withTimeout(t), toBroker("POST", "/buy", request)); !isInvalid(err) {
					t.Errorf("the same request again: %v", err)
				}
				answer(request, opened, "sold "+plaintext)
				before = request
			}
			rekey, err := s.Rekey("POST", "/rekey")
			if err != nil {
				t.Fatal(err)
			}
			opened, err := client.RekeySession(withTimeout(t), toBroker("POST", "/rekey", rekey))
			if err != nil || opened.Algorithm != protocol {
				t.Fatalf("%+v, %v", opened, err)
			}
			answer(rekey, opened, "")
			if _, err := client.RekeySession(withTimeout(t), toBroker("POST", "/rekey", rekey)); !isInvalid(err) {
				t.Errorf("the same request for a key again: %v", err)
			}
			if _, err := s.Open(before, nil); !errors.Is(err, session.ErrNotAuthentic) {
				t.Errorf("a reply to a request from before: %v", err)
			}
			request, err := s.Seal("GET", "/orders", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.OpenRequest(withTimeout(t), toBroker("GET", "/orders", request)); err != nil {
				t.Errorf("with the next key: %v", err)
			}
			if err := client.CloseSession(withTimeout(t), "Native", s.ID()); err != nil {
				t.Error(err)
			}
		}
	})
}

// The attacker in the middle has its own broker, and not the key of the profile.
func TestASessionWithAnotherBrokerIsNotBegun(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("o", ed25519.SeedSize)))
		if s, err := initNative(t, client, session.HPKEP256, other.Public()); !errors.Is(err, session.ErrNotAuthentic) {
			t.Errorf("began %v, %v", s, err)
		}
	})
}

func TestAProfileWithNativeVersionsAloneRefusesTheOthers(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		for _, clientID := range []string{"", "shop"} {
			if _, err := client.InitSession(withTimeout(t), cryptobroker.InitSessionRequest{Profile: "Native", KeyAgreement: "ECDH_P256", Nonce: "n", ClientID: clientID}); !isInvalid(err) {
				t.Errorf("the client id %q: %v", clientID, err)
			}
		}
	})
}
