// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

const sessionProfile = "- Name: Shop\n  API: {Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}\n"

// sessionClient is a client of an application, and the application that passes its requests on.
type sessionClient struct {
	t      testing.TB
	broker sessionv1.SessionServiceClient
	id     string
	gcm    cipher.AEAD
	count  atomic.Int32
}

func newSession(t testing.TB, broker sessionv1.SessionServiceClient) *sessionClient {
	t.Helper()
	own := must(ecdh.P256().GenerateKey(rand.Reader))
	begun, err := broker.InitSession(t.Context(), &sessionv1.InitSessionRequest{
		Profile: "Shop", KeyAgreement: "ECDH_P256", ClientPublicKey: base64.StdEncoding.EncodeToString(own.PublicKey().Bytes()),
		TtlSec: 1800, Nonce: "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01", Timestamp: strconv.FormatInt(time.Now().UnixMilli(), 10),
	})
	if err != nil {
		t.Fatal(err)
	}
	if begun.GetEncAlg() != "A256GCM" || begun.GetExpiresInSec() != 1800 || begun.GetDescriptor_().GetAlgorithm() != "session-v1" {
		t.Errorf("got %v", begun)
	}
	secret := must(own.ECDH(must(ecdh.P256().NewPublicKey(must(base64.StdEncoding.DecodeString(begun.GetServerPublicKey()))))))
	key := must(hkdf.Key(sha256.New, secret, []byte(begun.GetSessionId()), "SESSION|A256GCM|AUTH", 32))
	return &sessionClient{t: t, broker: broker, id: begun.GetSessionId(), gcm: must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(key))))}
}

func (c *sessionClient) request(plaintext string) *sessionv1.OpenRequestRequest {
	nonce, timestamp, kid := fmt.Sprintf("00000000-0000-4000-8000-%012x", c.count.Add(1)), strconv.FormatInt(time.Now().UnixMilli(), 10), "session:"+c.id
	aad := "POST|/transaction/purchase|" + timestamp + "|" + nonce + "|" + kid
	sealed := c.gcm.Seal(nil, nil, []byte(plaintext), []byte(aad))
	text := base64.StdEncoding.EncodeToString
	return &sessionv1.OpenRequestRequest{
		Profile: "Shop", Method: "POST", Path: "/transaction/purchase", Kid: kid, EncAlg: "A256GCM", Nonce: nonce, Timestamp: timestamp,
		Iv: text(sealed[:12]), Tag: text(sealed[len(sealed)-16:]), Aad: text([]byte(aad)), Body: []byte(text(sealed[12 : len(sealed)-16])),
	}
}

func (c *sessionClient) open(r *sessionv1.OpenRequestRequest) (*sessionv1.OpenRequestResponse, error) {
	return c.broker.OpenRequest(c.t.Context(), r)
}

// read decrypts a reply.
func (c *sessionClient) read(r *sessionv1.SealReplyResponse) string {
	var sealed []byte
	for _, part := range []string{r.GetIv(), string(r.GetBody()), r.GetTag()} {
		sealed = append(sealed, must(base64.StdEncoding.DecodeString(part))...)
	}
	aad := "200|/transaction/purchase|" + r.GetTimestamp() + "|" + r.GetNonce() + "|session:" + c.id
	return string(must(c.gcm.Open(nil, nil, sealed, []byte(aad))))
}

func TestASessionOpensRequestsAndSealsReplies(t *testing.T) {
	b := start(t, sessionProfile)
	broker := sessionv1.NewSessionServiceClient(connect(t, b.socket("")))
	c := newSession(t, broker)
	for _, plaintext := range []string{"buy", strings.Repeat("large", 150<<10)} {
		r := c.request(plaintext)
		r.Metadata = &v1.Metadata{Id: "request"}
		opened, err := c.open(r)
		if err != nil {
			t.Fatal(err)
		}
		if string(opened.GetPlaintext()) != plaintext || opened.GetSessionId() != c.id || opened.GetPath() != "/transaction/purchase" {
			t.Fatalf("opened %.100v", opened)
		}
		sealed, err := broker.SealReply(t.Context(), &sessionv1.SealReplyRequest{Profile: "Shop", SessionId: c.id, ClientPath: opened.GetClientPath(), Plaintext: []byte(plaintext)})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.read(sealed); got != plaintext {
			t.Errorf("the client reads %.100q", got)
		}
	}
	for range 2 {
		if _, err := broker.CloseSession(t.Context(), &sessionv1.CloseSessionRequest{Profile: "Shop", SessionId: c.id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.open(c.request("buy")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a request after the end: %v", err)
	}
}

func TestTheMetricsCountSessions(t *testing.T) {
	b := start(t, sessionProfile)
	c := newSession(t, sessionv1.NewSessionServiceClient(connect(t, b.socket(""))))
	if _, err := c.open(c.request("buy")); err != nil {
		t.Fatal(err)
	}
	awaitMetrics(t, b, "crypto_broker_sessions 1", "crypto_broker_session_nonces 1",
		`crypto_broker_requests_total{code="OK",operation="OpenRequest",profile="Shop"} 1`)
}

func TestOneOfAThousandCopiesOfARequestIsOpenedThroughTheSocket(t *testing.T) {
	b := start(t, sessionProfile)
	c := newSession(t, sessionv1.NewSessionServiceClient(connect(t, b.socket(""))))
	r := c.request("buy")
	var opened, refused atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				switch _, err := c.open(r); status.Code(err) {
				case codes.OK:
					opened.Add(1)
				case codes.InvalidArgument:
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if opened.Load() != 1 || refused.Load() != 999 {
		t.Errorf("%d opened, %d refused", opened.Load(), refused.Load())
	}
}

func TestEachSocketHasItsPartOfTheSessions(t *testing.T) {
	awaitMetrics(t, start(t, sessionProfile), "crypto_broker_session_limit 131072")
	awaitMetrics(t, start(t, sessionProfile, "web", "worker"), "crypto_broker_session_limit 65536")
}

// The broker checks the profile at each call, and ends sessions that a change no longer allows.
func TestASessionEndsWhenItsProfileNoLongerAllowsIt(t *testing.T) {
	for sentence, changed := range map[string]string{
		"without sessions":   "- Name: Shop\n  API: {HashData: {HashAlg: sha-256}}\n",
		"of another version": strings.Replace(sessionProfile, "session-v1, ", "", 1),
		"gone":               sha256Profile,
		"for another user":   sessionProfile + fmt.Sprintf("  Callers: {UIDs: [%d]}\n", os.Getuid()+1),
	} {
		t.Run(sentence, func(t *testing.T) {
			b := start(t, sessionProfile)
			c := newSession(t, sessionv1.NewSessionServiceClient(connect(t, b.socket(""))))
			b.use(t, sessionProfile) // the same profile again ends no session
			if _, err := c.open(c.request("buy")); err != nil {
				t.Fatal(err)
			}
			b.use(t, changed)
			if _, err := c.open(c.request("buy")); err == nil {
				t.Error("opened a request")
			}
			b.use(t, sessionProfile)
			if _, err := c.open(c.request("buy")); status.Code(err) != codes.InvalidArgument {
				t.Errorf("with the first profile again: %v", err)
			}
		})
	}
}

func TestASessionIsOfTheCallerThatBeganIt(t *testing.T) {
	b := start(t, sessionProfile, "web", "worker")
	web := sessionv1.NewSessionServiceClient(connect(t, b.socket("web")))
	worker := sessionv1.NewSessionServiceClient(connect(t, b.socket("worker")))
	c := newSession(t, web)
	r := c.request("buy")
	stolen, err := worker.OpenRequest(t.Context(), r)
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("another caller opened %v, %v", stolen, err)
	}
	if _, err := worker.SealReply(t.Context(), &sessionv1.SealReplyRequest{Profile: "Shop", SessionId: c.id, ClientPath: "/a"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another caller seals: %v", err)
	}
	if _, err := worker.CloseSession(t.Context(), &sessionv1.CloseSessionRequest{Profile: "Shop", SessionId: c.id}); err != nil {
		t.Error(err)
	}
	if _, err := c.open(r); err != nil {
		t.Errorf("its own caller: %v", err)
	}
}

func TestAnErrorOfASessionDoesNotSayWhatIsWrong(t *testing.T) {
	b := start(t, sessionProfile)
	broker := sessionv1.NewSessionServiceClient(connect(t, b.socket("")))
	c := newSession(t, broker)
	texts := map[string]bool{}
	for sentence, change := range map[string]func(*sessionv1.OpenRequestRequest){
		"an unknown session": func(r *sessionv1.OpenRequestRequest) { r.Kid = "session:" + noSession },
		"a wrong tag":        func(r *sessionv1.OpenRequestRequest) { r.Tag = strings.Repeat("A", 22) + "==" },
		"a wrong form":       func(r *sessionv1.OpenRequestRequest) { r.Iv = "?" },
		"an old time":        func(r *sessionv1.OpenRequestRequest) { r.Timestamp, r.Aad = "1000000000000", "" },
		"a large header":     func(r *sessionv1.OpenRequestRequest) { r.Aad = strings.Repeat("A", 100<<10) },
		"nothing":            func(r *sessionv1.OpenRequestRequest) { proto.Reset(r); r.Profile = "Shop" },
	} {
		r := c.request("buy")
		change(r)
		_, err := c.open(r)
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", sentence, err)
		}
		texts[status.Convert(err).Message()] = true
	}
	if len(texts) != 1 {
		t.Errorf("the sentences differ: %v", texts)
	}
	large := c.request("buy")
	large.Body = make([]byte, 1<<20+1)
	if _, err := c.open(large); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "body") {
		t.Errorf("a large body: %v", err)
	}
}
