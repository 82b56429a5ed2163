// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/hpke"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

// server is the other side of a session, which shares no code with the broker.
type server struct {
	reply  InitReply
	secret []byte
}

var serverKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("s", 32)))

func answer(t *testing.T, in InitRequest, name string, sign func([]byte) []byte) server {
	t.Helper()
	suite := suites[Agreement(in.KeyAgreement)]
	kem, err := hpke.NewKEM(suite.kem)
	if err != nil {
		t.Fatal(err)
	}
	point, err := base64.StdEncoding.DecodeString(in.ClientPublicKey)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := kem.NewPublicKey(point)
	if err != nil {
		t.Fatal(err)
	}
	reply := InitReply{SessionID: "S-0123456789abcdef0123456789abcdef", EncAlg: "A256GCM", ExpiresInSec: 300, SignatureAlgorithm: name}
	context := strings.Join([]string{suite.protocol, "Shop", "A256GCM", reply.SessionID, "300", in.ClientPublicKey}, "\n")
	share, sender, err := hpke.NewSender(peer, hpke.HKDFSHA256(), hpke.ExportOnly(), []byte(context))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := sender.Export("secret", 32)
	if err != nil {
		t.Fatal(err)
	}
	reply.ServerPublicKey = base64.StdEncoding.EncodeToString(share)
	reply.Signature = base64.StdEncoding.EncodeToString(sign([]byte(context + "\n" + reply.ServerPublicKey + "\n" + name)))
	return server{reply, secret}
}

func signed(message []byte) []byte { return ed25519.Sign(serverKey, message) }

func config() Config {
	return Config{Profile: "Shop", Agreement: HPKEP256, PublicKey: serverKey.Public(), SignatureAlgorithm: "ed25519", Lifetime: time.Minute}
}

func begin(t *testing.T, c Config) *Handshake {
	t.Helper()
	h, err := Begin(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func gcm(t *testing.T, secret []byte, label string) cipher.AEAD {
	t.Helper()
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(label + "\x01"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return aead
}

func TestBothSidesOfASessionHaveTheSameKeys(t *testing.T) {
	for agreement := range suites {
		c := config()
		c.Agreement = agreement
		h := begin(t, c)
		other := answer(t, h.Request(), "ed25519", signed)
		s, err := h.Finish(other.reply)
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(s.Expires()); left > 300*time.Second || left < 200*time.Second {
			t.Errorf("expires in %s, expected 300 s", left)
		}
		for want := range 2 {
			r, err := s.Seal("POST", "/buy", []byte("a book"))
			if err != nil || !strings.HasSuffix(r.Sequence, []string{".1", ".2"}[want]) {
				t.Fatalf("%+v, %v", r, err)
			}
			got, err := gcm(t, other.secret, "request").Open(nil, nil, r.Body, []byte("POST|/buy|"+r.Timestamp+"|"+r.Sequence+"|"+r.Kid))
			if err != nil || string(got) != "a book" {
				t.Errorf("the server reads %q, %v", got, err)
			}
			reply := gcm(t, other.secret, "reply").Seal(nil, nil, []byte("sold"), []byte("REPLY|/buy|"+r.Sequence+"|"+r.Kid))
			if got, err := s.Open(r, reply); err != nil || string(got) != "sold" {
				t.Errorf("the client reads %q, %v", got, err)
			}
			for sentence, bad := range map[string][]byte{
				"nothing": nil, "a reply that was changed": append(reply[:len(reply)-1:len(reply)-1], reply[len(reply)-1]+1),
				"its own request":         r.Body,
				"the reply to another":    gcm(t, other.secret, "reply").Seal(nil, nil, []byte("sold"), []byte("REPLY|/buy|1.9|"+r.Kid)),
				"the key of requests":     gcm(t, other.secret, "request").Seal(nil, nil, []byte("sold"), []byte("REPLY|/buy|"+r.Sequence+"|"+r.Kid)),
				"a reply to another path": gcm(t, other.secret, "reply").Seal(nil, nil, []byte("sold"), []byte("REPLY|/sell|"+r.Sequence+"|"+r.Kid)),
			} {
				if got, err := s.Open(r, bad); !errors.Is(err, ErrNotAuthentic) {
					t.Errorf("%s: the client reads %q, %v", sentence, got, err)
				}
			}
		}
		s.Close()
		if _, err := s.Seal("POST", "/buy", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
		if _, err := s.Rekey("POST", "/buy"); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	}
}

func TestAnAnswerIsNotAuthenticIf(t *testing.T) {
	for sentence, change := range map[string]func(*InitReply){
		"the session is another one":    func(r *InitReply) { r.SessionID = "S-00000000000000000000000000000000" },
		"the share is another one":      func(r *InitReply) { r.ServerPublicKey = base64.StdEncoding.EncodeToString(make([]byte, 65)) },
		"the share is no base64":        func(r *InitReply) { r.ServerPublicKey += "\n" },
		"the cipher is another one":     func(r *InitReply) { r.EncAlg = "A128GCM" },
		"the lifetime is another one":   func(r *InitReply) { r.ExpiresInSec++ },
		"the signature is another one":  func(r *InitReply) { r.Signature = base64.StdEncoding.EncodeToString(make([]byte, 64)) },
		"there is no signature":         func(r *InitReply) { r.Signature = "" },
		"the algorithm is another one":  func(r *InitReply) { r.SignatureAlgorithm = "ecdsa-with-sha-256" },
		"there is no algorithm":         func(r *InitReply) { r.SignatureAlgorithm = "" },
		"the session has a line break":  func(r *InitReply) { r.SessionID += "\n300" },
		"nothing is in it":              func(r *InitReply) { *r = InitReply{} },
		"it is the answer to another":   nil,
		"it is for another profile":     nil,
		"it is for another agreement":   nil,
		"another key has signed it":     nil,
		"the key has signed without it": nil,
	} {
		t.Run(sentence, func(t *testing.T) {
			c := config()
			switch sentence {
			case "it is for another profile":
				c.Profile = "Bank"
			case "another key has signed it":
				c.PublicKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("o", 32))).Public()
			}
			h := begin(t, c)
			asked, sign := h.Request(), signed
			switch sentence {
			case "it is the answer to another":
				asked = begin(t, c).Request()
			case "it is for another agreement":
				other := config()
				other.Agreement = HPKEXWing
				asked = begin(t, other).Request()
			case "the key has signed without it":
				sign = func(message []byte) []byte { return signed(message[:strings.LastIndexByte(string(message), '\n')]) }
			}
			reply := answer(t, asked, "ed25519", sign).reply
			if change != nil {
				change(&reply)
			}
			if s, err := h.Finish(reply); !errors.Is(err, ErrNotAuthentic) {
				t.Errorf("began %v, %v", s, err)
			}
		})
	}
}

func TestTheSignatureMayBeOf(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	modulus, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key  crypto.PublicKey
		sign func([]byte) ([]byte, error)
	}{
		"ed25519": {serverKey.Public(), func(m []byte) ([]byte, error) { return signed(m), nil }},
		"ecdsa-with-sha-384": {p384.Public(), func(m []byte) ([]byte, error) {
			digest := sha512.Sum384(m)
			r, s, err := ecdsa.Sign(rand.Reader, p384, digest[:])
			raw := make([]byte, 96)
			r.FillBytes(raw[:48])
			s.FillBytes(raw[48:])
			return raw, err
		}},
		"rsa-with-sha-256": {modulus.Public(), func(m []byte) ([]byte, error) {
			digest := sha256.Sum256(m)
			return rsa.SignPKCS1v15(rand.Reader, modulus, crypto.SHA256, digest[:])
		}},
		"rsa-pss-with-sha-256": {modulus.Public(), func(m []byte) ([]byte, error) {
			digest := sha256.Sum256(m)
			return rsa.SignPSS(rand.Reader, modulus, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		}},
	} {
		c := config()
		c.PublicKey, c.SignatureAlgorithm = test.key, name
		h := begin(t, c)
		good := answer(t, h.Request(), name, func(m []byte) []byte {
			signature, err := test.sign(m)
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}).reply
		if _, err := h.Finish(good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range []string{"", "AAAA", good.Signature[:len(good.Signature)-4] + "AAA="} {
			reply := good
			reply.Signature = bad
			if _, err := h.Finish(reply); !errors.Is(err, ErrNotAuthentic) {
				t.Errorf("%s with the signature %q: %v", name, bad, err)
			}
		}
	}
}

func TestBeginRefuses(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`found the agreement "ECDH_P256", expected HPKE_P256 or HPKE_XWING`: func(c *Config) { c.Agreement = "ECDH_P256" },
		"Profile is empty": func(c *Config) { c.Profile = "" },
		`found the signature algorithm "ml-dsa-65" and a key of type ed25519.PublicKey`:          func(c *Config) { c.SignatureAlgorithm = "ml-dsa-65" },
		`found the signature algorithm "ed25519" and a key of type <nil>`:                        func(c *Config) { c.PublicKey = nil },
		`found the signature algorithm "ed25519-with-sha-256"`:                                   func(c *Config) { c.SignatureAlgorithm = "ed25519-with-sha-256" },
		`found the signature algorithm "ecdsa-with-sha-256" and a key of type ed25519.PublicKey`: func(c *Config) { c.SignatureAlgorithm = "ecdsa-with-sha-256" },
		"found the lifetime 1.5s, expected whole seconds":                                        func(c *Config) { c.Lifetime = 1500 * time.Millisecond },
	} {
		c := config()
		change(&c)
		if _, err := Begin(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("found %v, expected %q", err, want)
		}
	}
}
