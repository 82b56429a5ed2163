// SPDX-License-Identifier: Apache-2.0

//go:build redis && process

package main_test

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
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

const redisProfile = "- Name: Shop\n  API: {Session: {Protocols: [session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, Store: redis}}\n"

// redisFlags returns the flags of brokers that have their sessions in one Redis server.
func redisFlags(t *testing.T) []string {
	t.Helper()
	server, settings, keys := redisserver.Start(t), t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(settings, "Redis.yaml"): "Addresses: [" + server.Address + "]\nWithoutTLS: true\nWrappingKey: sessions\nTimeout: 10s\n",
		filepath.Join(keys, "sessions.bin"):   strings.Repeat("w", 32),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--session-redis-dir", settings, "--keys-dir", keys}
}

func newRedisPlace(t *testing.T) *place {
	t.Helper()
	at := newPlace(t, "")
	at.write(redisProfile)
	return at
}

// sessionClient is a client of version 2 of the protocol.
type sessionClient struct {
	t     *testing.T
	id    string
	gcm   cipher.AEAD
	count int
}

const redisClientID = "shop-1"

// beginSession agrees on a key. The function sends the public key of the client, and returns the id of the session and the public
// key of the broker.
func beginSession(t *testing.T, send func(publicKey, timestamp string) (id, serverPublicKey string)) *sessionClient {
	t.Helper()
	own := must(ecdh.P256().GenerateKey(rand.Reader))
	id, text := send(base64.StdEncoding.EncodeToString(own.PublicKey().Bytes()), strconv.FormatInt(time.Now().UnixMilli(), 10))
	secret := must(own.ECDH(must(ecdh.P256().NewPublicKey(must(base64.StdEncoding.DecodeString(text))))))
	key := must(hkdf.Key(sha256.New, secret, []byte(id), "SESSION|A256GCM|"+redisClientID, 32))
	return &sessionClient{t: t, id: id, gcm: must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(key))))}
}

// must returns a value that cannot be missing in a test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (c *sessionClient) authenticated(idempotencyKey string) []byte {
	return []byte(strings.Replace(idempotencyKey, ".", "|", 1) + "|session:" + c.id + "|" + redisClientID)
}

// request returns a new request: its header X-Idempotency-Key and its body.
func (c *sessionClient) request(plaintext string) (idempotencyKey string, body []byte) {
	c.count++
	idempotencyKey = fmt.Sprintf("%d.00000000-0000-4000-8000-%012x", time.Now().UnixMilli(), c.count)
	return idempotencyKey, c.gcm.Seal(nil, nil, []byte(plaintext), c.authenticated(idempotencyKey))
}

// read decrypts a reply.
func (c *sessionClient) read(idempotencyKey string, body []byte) string {
	c.t.Helper()
	plaintext, err := c.gcm.Open(nil, nil, body, c.authenticated(idempotencyKey))
	if err != nil {
		c.t.Error("the client cannot read the reply: ", err)
	}
	return string(plaintext)
}

func (c *sessionClient) openRequest(plaintext string) *sessionv1.OpenRequestRequest {
	key, body := c.request(plaintext)
	return &sessionv1.OpenRequestRequest{
		Profile: "Shop", Method: "POST", Path: "/buy", Kid: "session:" + c.id, EncAlg: "A256GCM", IdempotencyKey: key, ClientId: redisClientID, Body: body,
	}
}

// serves checks that a broker opens a new request, and that the client can read the reply.
func (c *sessionClient) serves(broker sessionv1.SessionServiceClient) *sessionv1.OpenRequestRequest {
	c.t.Helper()
	request := c.openRequest("buy")
	opened, err := broker.OpenRequest(c.t.Context(), request)
	if err != nil || string(opened.GetPlaintext()) != "buy" {
		c.t.Fatalf("a new request: %v, %v", opened, err)
	}
	reply, err := broker.SealReply(c.t.Context(), &sessionv1.SealReplyRequest{
		Profile: "Shop", SessionId: c.id, ClientPath: opened.GetClientPath(), Plaintext: []byte("bought"),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if got := c.read(reply.GetIdempotencyKey(), reply.GetBody()); got != "bought" {
		c.t.Errorf("the client reads %q", got)
	}
	return request
}

func (c *sessionClient) refused(what string, broker sessionv1.SessionServiceClient, request *sessionv1.OpenRequestRequest) {
	c.t.Helper()
	if opened, err := broker.OpenRequest(c.t.Context(), request); status.Code(err) != codes.InvalidArgument {
		c.t.Errorf("%s: %v, %v, want InvalidArgument", what, opened, err)
	}
}

func TestASessionInRedisOutlivesABrokerThatIsKilled(t *testing.T) {
	flags, at, beside := redisFlags(t), newRedisPlace(t), newRedisPlace(t)
	run := func(at *place) (*process, sessionv1.SessionServiceClient) {
		broker := start(t, at.args(flags...)...)
		broker.listening()
		return broker, sessionv1.NewSessionServiceClient(connect(t, at.socket("")))
	}
	killed, first := run(at)
	_, other := run(beside)
	c := beginSession(t, func(publicKey, timestamp string) (string, string) {
		begun, err := first.InitSession(t.Context(), &sessionv1.InitSessionRequest{
			Profile: "Shop", KeyAgreement: "ECDH_P256", ClientPublicKey: publicKey, TtlSec: 1800,
			Nonce: "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01", Timestamp: timestamp, ClientId: redisClientID,
		})
		if err != nil {
			t.Fatal(err)
		}
		return begun.GetSessionId(), begun.GetServerPublicKey()
	})
	old := c.serves(first)
	killed.kill(syscall.SIGKILL)
	<-killed.exited

	_, again := run(at)
	c.refused("the request before the end, at the broker that is back", again, old)
	c.refused("the request before the end, at the other broker", other, old)
	c.serves(again)
	c.serves(other)

	if _, err := again.CloseSession(t.Context(), &sessionv1.CloseSessionRequest{Profile: "Shop", SessionId: c.id}); err != nil {
		t.Fatal(err)
	}
	c.refused("a request at the other broker after CloseSession", other, c.openRequest("buy"))
}

func TestASessionThatBeganAtOneGatewayServesRequestsAtAnother(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a missing field is also missing in the reply
		_, _ = w.Write(append(body, " for you"...))
	}))
	defer app.Close()
	_, port, err := net.SplitHostPort(app.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	flags := append(redisFlags(t), "--session-gateway", "127.0.0.1:0:"+port, "--session-gateway-profile", "Shop")
	run := func() string {
		broker := start(t, newRedisPlace(t).args(flags...)...)
		gateway, _ := broker.logged("listening", 1)["sessionGateway"].(string)
		return gateway
	}
	one, other := run(), run()
	send := func(gateway, path, idempotencyKey, kid string, body []byte) (code int, replyKey string, reply []byte) {
		t.Helper()
		request := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+gateway+path, bytes.NewReader(body)))
		request.Header.Set("X-ClientId", redisClientID)
		request.Header.Set("X-Idempotency-Key", idempotencyKey)
		if kid != "" {
			request.Header.Set("X-Kid", kid)
			request.Header.Set("X-Enc-Alg", "A256GCM")
		}
		answer, err := (&http.Client{Timeout: waitLimit, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		reply, err = io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, answer.Header.Get("X-Idempotency-Key"), reply
	}
	c := beginSession(t, func(publicKey, timestamp string) (string, string) {
		code, _, reply := send(one, "/session/init", timestamp+".5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01", "",
			[]byte(`{"keyAgreement":"ECDH_P256","clientPublicKey":"`+publicKey+`","ttlSec":1800}`))
		var begun struct{ SessionID, ServerPublicKey string }
		if err := json.Unmarshal(reply, &begun); err != nil || code != http.StatusOK {
			t.Fatalf("%d: %s (%v)", code, reply, err)
		}
		return begun.SessionID, begun.ServerPublicKey
	})
	kid := "session:" + c.id
	key, body := c.request("tea")
	code, replyKey, reply := send(other, "/buy", key, kid, body)
	if code != http.StatusOK {
		t.Fatalf("a request at the other gateway: %d %s", code, reply)
	}
	if got := c.read(replyKey, reply); got != "tea for you" {
		t.Errorf("the client reads %q", got)
	}
	for name, gateway := range map[string]string{"the first": one, "the other": other} {
		if code, _, _ := send(gateway, "/buy", key, kid, body); code != http.StatusUnauthorized {
			t.Errorf("the same request at %s gateway: %d, want 401", name, code)
		}
	}
}
