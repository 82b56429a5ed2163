// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// nativePolicy compiles a section with the native versions and more fields.
func nativePolicy(t testing.TB, more string) *profile.SessionPolicy {
	t.Helper()
	return compiled(t, "Protocols: [session-v1, session-hpke-p256, session-hpke-x-wing], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, "+
		"SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: k}]"+more)
}

func compiled(t testing.TB, section string) *profile.SessionPolicy {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte("- Name: P\n  API: {Session: {"+section+"}}\n"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p.Session()
}

// agreements are the key agreements of the native versions, with their mechanisms in HPKE.
var agreements = map[string]struct {
	protocol string
	kem      uint16
}{
	"HPKE_P256":  {"session-hpke-p256", 0x0010},
	"HPKE_XWING": {"session-hpke-x-wing", 0x647a},
}

// signingKey signs in the tests.
var signingKey = func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

func signTranscript(transcript []byte) ([]byte, error) {
	digest := sha256.Sum256(transcript)
	return ecdsa.SignASN1(rand.Reader, signingKey, digest[:])
}

// nativeClient is a client of the native versions that shares no code with the broker.
type nativeClient struct {
	id     string
	secret []byte
	clock  *clock
	epoch  int
	number int
}

func connectNative(t testing.TB, s *Store, c *clock, p *profile.SessionPolicy, agreement string) *nativeClient {
	t.Helper()
	kem, err := hpke.NewKEM(agreements[agreement].kem)
	if err != nil {
		t.Fatal(err)
	}
	own, err := kem.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	public := base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())
	begun, err := s.BeginNative(theOwner, p, Init{KeyAgreement: agreement, ClientPublicKey: public, TTL: 1800 * time.Second}, signTranscript)
	if err != nil {
		t.Fatal(err)
	}
	share, err := base64.StdEncoding.DecodeString(begun.ServerPublicKey)
	if err != nil {
		t.Fatal(err)
	}
	context := strings.Join([]string{agreements[agreement].protocol, "P", "A256GCM", begun.ID, "1800", public}, "\n")
	signature, err := base64.StdEncoding.DecodeString(begun.Signature)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(context + "\n" + begun.ServerPublicKey + "\n" + "ecdsa-with-sha-256"))
	if begun.SignatureAlgorithm != "ecdsa-with-sha-256" || !ecdsa.VerifyASN1(&signingKey.PublicKey, digest[:], signature) {
		t.Fatal("the signature of the transcript is not valid")
	}
	recipient, err := hpke.NewRecipient(share, own, hpke.HKDFSHA256(), hpke.ExportOnly(), []byte(context))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := recipient.Export("secret", 32)
	if err != nil {
		t.Fatal(err)
	}
	return &nativeClient{id: begun.ID, secret: secret, clock: c, epoch: 1}
}

// derive is HKDF-Expand for 32 bytes, which is one HMAC.
func derive(secret []byte, label string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(label + "\x01"))
	return mac.Sum(nil)
}

func (c *nativeClient) kid() string { return "session:" + c.id }

func (c *nativeClient) gcm(label string) *client { return &client{key: derive(c.secret, label)} }

// next encrypts the next request of the client.
func (c *nativeClient) next(plaintext string) Request {
	c.number++
	return c.request(c.number, plaintext)
}

func (c *nativeClient) request(number int, plaintext string) Request {
	return c.requestAt(c.clock.read(), number, plaintext)
}

func (c *nativeClient) requestAt(at time.Time, number int, plaintext string) Request {
	r := Request{
		Method: "POST", Path: "/transaction/purchase", Kid: c.kid(), EncAlg: "A256GCM", Timestamp: strconv.FormatInt(at.UnixMilli(), 10),
		Sequence: fmt.Sprintf("%d.%d", c.epoch, number),
	}
	aad := strings.Join([]string{r.Method, r.Path, r.Timestamp, r.Sequence, r.Kid}, "|")
	r.Body = c.gcm("request").gcm().Seal(nil, nil, []byte(plaintext), []byte(aad))
	return r
}

// rekey goes on to the next key, and returns the request that tells the broker.
func (c *nativeClient) rekey() Request {
	c.secret, c.epoch, c.number = derive(c.secret, "rekey"), c.epoch+1, 0
	return c.next("")
}

// read decrypts the reply to a request.
func (c *nativeClient) read(to Request, r Reply) (string, error) {
	if r.Kid != c.kid() || r.EncAlg != "A256GCM" || r.Sequence != to.Sequence {
		return "", fmt.Errorf("the reply is of another request: %+v", r)
	}
	plaintext, err := c.gcm("reply").gcm().Open(nil, nil, r.Body, []byte("REPLY|"+to.Path+"|"+to.Sequence+"|"+c.kid()))
	return string(plaintext), err
}
