// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
	sessionv1 "github.com/crypto-broker/crypto-broker-operator/clients/go/internal/stubs/cryptobroker/session/v1"
)

func (r *recording) InitSession(_ context.Context, q *sessionv1.InitSessionRequest) (*sessionv1.InitSessionResponse, error) {
	return take[*sessionv1.InitSessionResponse](r, q)
}

func (r *recording) OpenRequest(_ context.Context, q *sessionv1.OpenRequestRequest) (*sessionv1.OpenRequestResponse, error) {
	return take[*sessionv1.OpenRequestResponse](r, q)
}

func (r *recording) SealReply(_ context.Context, q *sessionv1.SealReplyRequest) (*sessionv1.SealReplyResponse, error) {
	return take[*sessionv1.SealReplyResponse](r, q)
}

func (r *recording) CloseSession(_ context.Context, q *sessionv1.CloseSessionRequest) (*sessionv1.CloseSessionResponse, error) {
	return take[*sessionv1.CloseSessionResponse](r, q)
}

func (r *recording) RekeySession(_ context.Context, q *sessionv1.RekeySessionRequest) (*sessionv1.RekeySessionResponse, error) {
	return take[*sessionv1.RekeySessionResponse](r, q)
}

// sessionCases are the cases of TestTheWireIsWhatTheDescriptionsSay with sessions.
func sessionCases() map[string]wireCase {
	warning := wantWarning
	return map[string]wireCase{
		"InitSession": {
			&sessionv1.InitSessionResponse{SessionId: "S-1", ServerPublicKey: "point", EncAlg: "A", ExpiresInSec: 300, Signature: "s", SignatureAlgorithm: "a", Descriptor_: descriptor, Metadata: warnedMetadata()},
			&sessionv1.InitSessionRequest{
				Profile: "P", KeyAgreement: "E", ClientPublicKey: "key", TtlSec: 7, Nonce: "n", Timestamp: "1", ClientId: "c", Metadata: tracedMetadata,
			},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.InitSession(ctx, cryptobroker.InitSessionRequest{
					Profile: "P", KeyAgreement: "E", ClientPublicKey: "key", TTLSeconds: 7, Nonce: "n", Timestamp: "1", ClientID: "c",
				})
			},
			cryptobroker.InitSessionResult{
				SessionID: "S-1", ServerPublicKey: "point", EncAlg: "A", ExpiresIn: 5 * time.Minute, Signature: "s", SignatureAlgorithm: "a", Algorithm: "the algorithm", Deprecation: &warning,
			},
		},
		"OpenRequest": {
			&sessionv1.OpenRequestResponse{
				Plaintext: []byte("text"), SessionId: "S-1", Path: "/p", ClientPath: "/c", ClientId: "c", Sequence: "1.1", Descriptor_: descriptor, Metadata: warnedMetadata(),
			},
			&sessionv1.OpenRequestRequest{
				Profile: "P", Method: "POST", Path: "/p", Kid: "k", EncAlg: "A", Iv: "iv", Tag: "tag", Aad: "aad", Nonce: "n", Timestamp: "1",
				IdempotencyKey: "i", ClientId: "c", Sequence: "1.2", Body: []byte("body"), Metadata: tracedMetadata,
			},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.OpenRequest(ctx, cryptobroker.OpenRequestRequest{
					Profile: "P", Method: "POST", Path: "/p", Kid: "k", EncAlg: "A", IV: "iv", Tag: "tag", AAD: "aad", Nonce: "n", Timestamp: "1",
					IdempotencyKey: "i", ClientID: "c", Sequence: "1.2", Body: []byte("body"),
				})
			},
			cryptobroker.OpenRequestResult{
				Plaintext: []byte("text"), SessionID: "S-1", Path: "/p", ClientPath: "/c", ClientID: "c", Sequence: "1.1", Algorithm: "the algorithm", Deprecation: &warning,
			},
		},
		"SealReply": {
			&sessionv1.SealReplyResponse{
				Kid: "k", EncAlg: "A", Iv: "iv", Tag: "tag", Aad: "aad", Nonce: "n", Timestamp: "1", IdempotencyKey: "i", ClientId: "c", Sequence: "1.3", Body: []byte("body"),
				Descriptor_: descriptor, Metadata: warnedMetadata(),
			},
			&sessionv1.SealReplyRequest{Profile: "P", SessionId: "S-1", ClientPath: "/c", Sequence: "1.4", Plaintext: []byte("text"), Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.SealReply(ctx, cryptobroker.SealReplyRequest{Profile: "P", SessionID: "S-1", ClientPath: "/c", Sequence: "1.4", Plaintext: []byte("text")})
			},
			cryptobroker.SealReplyResult{
				Kid: "k", EncAlg: "A", IV: "iv", Tag: "tag", AAD: "aad", Nonce: "n", Timestamp: "1", IdempotencyKey: "i", ClientID: "c", Sequence: "1.3", Body: []byte("body"),
				Algorithm: "the algorithm", Deprecation: &warning,
			},
		},
		"RekeySession": {
			&sessionv1.RekeySessionResponse{SessionId: "S-1", Path: "/p", ClientPath: "/c", Sequence: "2.1", Descriptor_: descriptor, Metadata: warnedMetadata()},
			&sessionv1.RekeySessionRequest{
				Profile: "P", Method: "POST", Path: "/p", Kid: "k", EncAlg: "A", Timestamp: "1", Sequence: "2.1", Body: []byte("body"), Metadata: tracedMetadata,
			},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return c.RekeySession(ctx, cryptobroker.OpenRequestRequest{
					Profile: "P", Method: "POST", Path: "/p", Kid: "k", EncAlg: "A", Timestamp: "1", Sequence: "2.1", Body: []byte("body"),
				})
			},
			cryptobroker.OpenRequestResult{
				SessionID: "S-1", Path: "/p", ClientPath: "/c", Sequence: "2.1", Algorithm: "the algorithm", Deprecation: &warning,
			},
		},
		"CloseSession": {
			&sessionv1.CloseSessionResponse{Metadata: warnedMetadata()},
			&sessionv1.CloseSessionRequest{Profile: "P", SessionId: "S-1", Metadata: tracedMetadata},
			func(ctx context.Context, c *cryptobroker.Client) (any, error) {
				return nil, c.CloseSession(ctx, "P", "S-1")
			},
			nil,
		},
	}
}

func TestAnApplicationServesASession(t *testing.T) {
	bothWays(t, func(t *testing.T, client *cryptobroker.Client) {
		own, err := ecdh.P256().GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		now := strconv.FormatInt(time.Now().UnixMilli(), 10)
		text := base64.StdEncoding.EncodeToString
		begun, err := client.InitSession(withTimeout(t), cryptobroker.InitSessionRequest{
			Profile: "Shop", KeyAgreement: "ECDH_P256", ClientPublicKey: text(own.PublicKey().Bytes()), TTLSeconds: 1800, Nonce: "n0", Timestamp: now,
		})
		if err != nil {
			t.Fatal(err)
		}
		if begun.ExpiresIn != 30*time.Minute || begun.Algorithm != "session-v1" {
			t.Errorf("began %+v", begun)
		}
		gcm := sessionCipher(t, own, begun)
		aad := "POST|/buy|" + now + "|n1|session:" + begun.SessionID
		sealed := gcm.Seal(nil, nil, []byte("a book"), []byte(aad))
		request := cryptobroker.OpenRequestRequest{
			Profile: "Shop", Method: "POST", Path: "/buy", Kid: "session:" + begun.SessionID, EncAlg: begun.EncAlg, IV: text(sealed[:12]),
			Tag: text(sealed[len(sealed)-16:]), AAD: text([]byte(aad)), Nonce: "n1", Timestamp: now, Body: []byte(text(sealed[12 : len(sealed)-16])),
		}
		opened, err := client.OpenRequest(withTimeout(t), request)
		if err != nil || string(opened.Plaintext) != "a book" || opened.SessionID != begun.SessionID {
			t.Fatalf("opened %+v, %v", opened, err)
		}
		var refused *cryptobroker.Error
		if _, err := client.OpenRequest(withTimeout(t), request); !errors.As(err, &refused) || refused.Code != cryptobroker.CodeInvalidArgument {
			t.Errorf("the same request again: %v", err)
		}
		reply, err := client.SealReply(withTimeout(t), cryptobroker.SealReplyRequest{Profile: "Shop", SessionID: opened.SessionID, ClientPath: opened.ClientPath, Plaintext: []byte("sold")})
		if err != nil {
			t.Fatal(err)
		}
		var parts []byte
		for _, part := range []string{reply.IV, string(reply.Body), reply.Tag} {
			decoded, err := base64.StdEncoding.DecodeString(part)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, decoded...)
		}
		got, err := gcm.Open(nil, nil, parts, []byte("200|/buy|"+reply.Timestamp+"|"+reply.Nonce+"|session:"+begun.SessionID))
		if err != nil || string(got) != "sold" {
			t.Errorf("the reply is %q, %v", got, err)
		}
		for range 2 {
			if err := client.CloseSession(withTimeout(t), "Shop", begun.SessionID); err != nil {
				t.Error(err)
			}
		}
	})
}

// sessionCipher is the cipher of a client of the application.
func sessionCipher(t *testing.T, own *ecdh.PrivateKey, begun cryptobroker.InitSessionResult) cipher.AEAD {
	t.Helper()
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
	key, err := hkdf.Key(sha256.New, secret, []byte(begun.SessionID), "SESSION|A256GCM|AUTH", 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return gcm
}

// The application is the application of the example.
func TestTheApplicationOfTheExampleServesItsClients(t *testing.T) {
	server := httptest.NewServer(shop())
	defer server.Close()
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now, text := strconv.FormatInt(time.Now().UnixMilli(), 10), base64.StdEncoding.EncodeToString
	post := func(path, body string, headers map[string]string) (int, http.Header, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(withTimeout(t), http.MethodPost, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range headers {
			request.Header.Set(name, value)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header, got
	}
	_, _, answer := post("/session/init", fmt.Sprintf(`{"keyAgreement":"ECDH_P256","clientPublicKey":%q,"ttlSec":1800}`, text(own.PublicKey().Bytes())),
		map[string]string{"X-Nonce": "n0", "X-Timestamp": now})
	var begun struct {
		SessionID, ServerPublicKey, EncAlg string
		ExpiresInSec                       int
	}
	if err := json.Unmarshal(answer, &begun); err != nil || begun.ExpiresInSec != 1800 || begun.EncAlg != "A256GCM" {
		t.Fatalf("began %s, %v", answer, err)
	}
	gcm := sessionCipher(t, own, cryptobroker.InitSessionResult{SessionID: begun.SessionID, ServerPublicKey: begun.ServerPublicKey})
	const path = "/transaction/purchase"
	aad := "POST|" + path + "|" + now + "|n1|session:" + begun.SessionID
	sealed := gcm.Seal(nil, nil, []byte("a book"), []byte(aad))
	headers := map[string]string{
		"X-Kid": "session:" + begun.SessionID, "X-Enc-Alg": "A256GCM", "X-IV": text(sealed[:12]), "X-Tag": text(sealed[len(sealed)-16:]),
		"X-AAD": text([]byte(aad)), "X-Nonce": "n1", "X-Timestamp": now,
	}
	body := text(sealed[12 : len(sealed)-16])
	if status, _, _ := post(path+"?price=0", body, headers); status != http.StatusUnauthorized {
		t.Errorf("a request with a query: %d", status)
	}
	status, received, answer := post(path, body, headers)
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, answer)
	}
	var parts []byte
	for _, part := range []string{received.Get("X-IV"), string(answer), received.Get("X-Tag")} {
		decoded, err := base64.StdEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, decoded...)
	}
	replied := "200|" + path + "|" + received.Get("X-Timestamp") + "|" + received.Get("X-Nonce") + "|session:" + begun.SessionID
	if got, err := gcm.Open(nil, nil, parts, []byte(replied)); err != nil || string(got) != "sold a book" {
		t.Errorf("the client reads %q, %v", got, err)
	}
	if status, _, _ := post(path, body, headers); status != http.StatusUnauthorized {
		t.Errorf("the same request again: %d", status)
	}
}
