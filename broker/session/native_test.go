// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestANativeSessionOpensRequestsAndSealsReplies(t *testing.T) {
	for agreement, of := range agreements {
		t.Run(agreement, func(t *testing.T) {
			s, now := newStore(t)
			p := nativePolicy(t, "")
			c := connectNative(t, s, now, p, agreement)
			for _, plaintext := range []string{"buy", "", strings.Repeat("large", 1000)} {
				request := c.next(plaintext)
				opened, err := s.Open(t.Context(), theOwner, p, &request)
				if err != nil || string(opened.Plaintext) != plaintext || opened.Protocol.String() != of.protocol || opened.Sequence != request.Sequence {
					t.Fatalf("opened %+v, %v", opened, err)
				}
				reply, err := s.SealNative(theOwner, p, opened.ID, opened.ClientPath, opened.Sequence, []byte("paid"))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.read(request, reply); err != nil || got != "paid" {
					t.Errorf("the client reads %q, %v", got, err)
				}
			}
		})
	}
}

// With one key for both directions, an attacker could send a reply back as a request.
func TestTheDirectionsOfANativeSessionHaveDifferentKeys(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	c := connectNative(t, s, now, p, "HPKE_P256")
	request := c.next("buy")
	if _, err := s.Open(t.Context(), theOwner, p, &request); err != nil {
		t.Fatal(err)
	}
	forged := c.request(2, "")
	aad := strings.Join([]string{forged.Method, forged.Path, forged.Timestamp, forged.Sequence, forged.Kid}, "|")
	forged.Body = c.gcm("reply").gcm().Seal(nil, nil, []byte("buy"), []byte(aad))
	if _, err := s.Open(t.Context(), theOwner, p, &forged); !errors.Is(err, ErrRefused) {
		t.Errorf("a request with the key of replies: %v", err)
	}
}

func TestAReplyOfANativeSessionBelongsToOneRequest(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	c := connectNative(t, s, now, p, "HPKE_P256")
	first, second := c.next("one"), c.next("two")
	for _, r := range []*Request{&first, &second} {
		if _, err := s.Open(t.Context(), theOwner, p, r); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := s.SealNative(theOwner, p, c.id, first.Path, first.Sequence, []byte("for one"))
	if err != nil {
		t.Fatal(err)
	}
	reply.Sequence = second.Sequence // an attacker in the middle swaps the replies
	if got, err := c.read(second, reply); err == nil {
		t.Errorf("the client takes %q as the reply to its second request", got)
	}
}

func TestARequestOfANativeSessionIsRefusedIf(t *testing.T) {
	for sentence, change := range map[string]func(*Request){
		"its method is another one":     func(r *Request) { r.Method = "PUT" },
		"its path is another one":       func(r *Request) { r.Path = "/transaction/refund" },
		"its time is another one":       func(r *Request) { r.Timestamp = r.Timestamp[:12] + "9" },
		"its number is another one":     func(r *Request) { r.Sequence = "1.2" },
		"its epoch is another one":      func(r *Request) { r.Sequence = "2.1" },
		"its number begins with a zero": func(r *Request) { r.Sequence = "1.01" },
		"it has no epoch":               func(r *Request) { r.Sequence = "1" },
		"it has a third number":         func(r *Request) { r.Sequence += ".1" },
		"it has no number":              func(r *Request) { r.Sequence = "" },
		"its tag is another one":        func(r *Request) { r.Body[len(r.Body)-1]++ },
		"it has no room for IV and tag": func(r *Request) { r.Body = r.Body[:27] },
		"it has a header of version 1":  func(r *Request) { r.Nonce = "n" },
		"it has an IV":                  func(r *Request) { r.IV = "AAAAAAAAAAAAAAAA" },
		"it has a header of version 2":  func(r *Request) { r.ClientID = "c" },
		"it has an idempotency key":     func(r *Request) { r.IdempotencyKey = r.Timestamp + ".n" },
		"its session is another one":    func(r *Request) { r.Kid = "session:S-00000000000000000000000000000000" },
		"it has a query":                func(r *Request) { r.Path += "?a=b" },
		"its cipher is another one":     func(r *Request) { r.EncAlg = "A128GCM" },
		"it has the form of version 1":  func(r *Request) { r.Nonce, r.Sequence = "n", "" },
		"it has the form of version 2": func(r *Request) {
			*r = Request{Method: r.Method, Path: r.Path, Kid: r.Kid, EncAlg: r.EncAlg, IdempotencyKey: r.Timestamp + ".n", ClientID: "c", Body: r.Body}
		},
		"its path is escaped another way":  func(r *Request) { r.Path = "/transaction%2Fpurchase" },
		"its path has an empty segment":    func(r *Request) { r.Path = "/transaction//purchase" },
		"its time is not within the clock": func(r *Request) { r.Timestamp = "1000000000000" },
	} {
		t.Run(sentence, func(t *testing.T) {
			s, now := newStore(t)
			p := nativePolicy(t, "")
			c := connectNative(t, s, now, p, "HPKE_P256")
			good := c.next("buy")
			bad := good
			bad.Body = slices.Clone(good.Body)
			change(&bad)
			if opened, err := s.Open(t.Context(), theOwner, p, &bad); !errors.Is(err, ErrRefused) {
				t.Errorf("opened %+v, %v", opened, err)
			}
			// The refused requests have used up no sequence number.
			good.Path = "/a/../transaction/./purchase" // a proxy has not normalised it
			if opened, err := s.Open(t.Context(), theOwner, p, &good); err != nil || opened.Path != "/transaction/purchase" {
				t.Errorf("the request itself: %+v, %v", opened, err)
			}
		})
	}
}

func TestARequestOfANativeSessionHasToBeWithinTheClockWindow(t *testing.T) {
	for offset, want := range map[time.Duration]error{
		-time.Minute: nil, time.Minute: nil, -time.Minute - time.Millisecond: ErrRefused, time.Minute + time.Millisecond: ErrRefused,
	} {
		s, now := newStore(t)
		p := nativePolicy(t, ", ClockWindow: 1m")
		c := connectNative(t, s, now, p, "HPKE_P256")
		r := c.requestAt(now.read().Add(offset), 1, "buy")
		if _, err := s.Open(t.Context(), theOwner, p, &r); !errors.Is(err, want) {
			t.Errorf("%s away: %v, want %v", offset, err, want)
		}
	}
}

func TestARequestSaysWhichKeyItHas(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	c := connectNative(t, s, now, p, "HPKE_P256")
	c.epoch = 2
	r := c.next("buy")
	if _, err := s.Open(t.Context(), theOwner, p, &r); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

// The requests come in any order, and each one comes more than once. The model of this test remembers all numbers.
func TestANumberIsAcceptedOnceInWhateverOrderNumbersCome(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 15))
		var n numbers
		accepted, highest := map[int64]bool{}, int64(0)
		for range 2000 {
			number := max(1, highest+random.Int64N(3*windowSize)-2*windowSize)
			if random.IntN(100) == 0 {
				number += 10 * windowSize
			}
			want := !accepted[number] && number > highest-windowSize
			if got := n.accept(number); got != want {
				t.Fatalf("seed %d: number %d with %d as the highest: accepted %t, want %t", seed, number, highest, got, want)
			}
			if want {
				accepted[number], highest = true, max(highest, number)
			}
		}
	}
}

func TestOneOfAThousandCopiesOfANativeRequestIsOpened(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	c := connectNative(t, s, now, p, "HPKE_P256")
	r := c.next("buy")
	var opened atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				copied := r
				if _, err := s.Open(t.Context(), theOwner, p, &copied); err == nil {
					opened.Add(1)
				}
			}
		})
	}
	all.Wait()
	if opened.Load() != 1 {
		t.Errorf("%d opened", opened.Load())
	}
}

func TestANativeSessionGetsTheNextKey(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, ", MaxMessages: 3")
	c := connectNative(t, s, now, p, "HPKE_P256")
	for range 3 {
		r := c.next("buy")
		if _, err := s.Open(t.Context(), theOwner, p, &r); err != nil {
			t.Fatal(err)
		}
	}
	old := *c
	late := c.next("too many for the key")
	if _, err := s.Open(t.Context(), theOwner, p, &late); !errors.Is(err, ErrRefused) {
		t.Fatalf("more messages than the key may have: %v", err)
	}
	rekey := c.rekey()
	opened, err := s.Rekey(theOwner, p, &rekey)
	if err != nil || opened.ID != c.id || opened.Path != rekey.Path || opened.Sequence != "2.1" {
		t.Fatalf("%+v, %v", opened, err)
	}
	reply, err := s.SealNative(theOwner, p, c.id, opened.ClientPath, opened.Sequence, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.read(rekey, reply); err != nil {
		t.Errorf("the reply: %v", err)
	}
	for sentence, refused := range map[string]Request{
		"the request for the key again":            rekey,
		"a request with the key before":            late,
		"a request for the same key":               old.request(9, ""),
		"a request with the new key, number again": c.request(1, ""),
	} {
		if _, err := s.Open(t.Context(), theOwner, p, &refused); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", sentence, err)
		}
		if _, err := s.Rekey(theOwner, p, &refused); !errors.Is(err, ErrRefused) {
			t.Errorf("%s, for a key: %v", sentence, err)
		}
	}
	if _, err := s.SealNative(theOwner, p, c.id, rekey.Path, "1.3", nil); !errors.Is(err, ErrEnded) {
		t.Errorf("a reply to a request with the key before: %v", err)
	}
	// The request for the next key is the first message under that key.
	for range 2 {
		r := c.next("buy")
		if opened, err := s.Open(t.Context(), theOwner, p, &r); err != nil || string(opened.Plaintext) != "buy" {
			t.Errorf("with the new key: %v", err)
		}
	}
	r := c.next("too many")
	if _, err := s.Open(t.Context(), theOwner, p, &r); !errors.Is(err, ErrRefused) {
		t.Errorf("more messages than the new key may have: %v", err)
	}
}

func TestARequestForTheNextKeyIsRefusedIf(t *testing.T) {
	for sentence, make := range map[string]func(*nativeClient) Request{
		"it has the key before":         func(c *nativeClient) Request { return c.next("") },
		"it skips a key":                func(c *nativeClient) Request { c.rekey(); return c.rekey() },
		"it has a plaintext":            func(c *nativeClient) Request { c.rekey(); return c.next("text") },
		"its epoch is not its key's":    func(c *nativeClient) Request { c.rekey(); c.epoch = 3; return c.next("") },
		"it has another epoch":          func(c *nativeClient) Request { r := c.rekey(); r.Sequence = "3.1"; return r },
		"it has another path":           func(c *nativeClient) Request { r := c.rekey(); r.Path = "/"; return r },
		"it is of an unknown session":   func(c *nativeClient) Request { c.id = "S-00000000000000000000000000000000"; return c.rekey() },
		"it is not within the clock":    func(c *nativeClient) Request { c.rekey(); return c.requestAt(noon.Add(-time.Hour), 1, "") },
		"it has the form of version 1":  func(c *nativeClient) Request { r := c.rekey(); r.Sequence, r.Nonce = "", "n"; return r },
		"the client is of version 1":    nil,
		"another caller sends it":       func(c *nativeClient) Request { return c.rekey() },
		"it is encrypted with no key":   func(c *nativeClient) Request { c.secret = make32(); return c.rekey() },
		"it has the key after the next": func(c *nativeClient) Request { c.rekey(); c.rekey(); c.epoch = 2; return c.next("") },
	} {
		t.Run(sentence, func(t *testing.T) {
			s, now := newStore(t)
			p := nativePolicy(t, "")
			c := connectNative(t, s, now, p, "HPKE_P256")
			before := *c
			owner := theOwner
			if strings.HasPrefix(sentence, "another caller") {
				owner.Caller.UID++
			}
			var r Request
			if make == nil {
				r = connect(t, s, now, p, "").request(noon, "")
			} else {
				r = make(c)
			}
			if opened, err := s.Rekey(owner, p, &r); !errors.Is(err, ErrRefused) {
				t.Errorf("%+v, %v", opened, err)
			}
			good := before.request(100, "buy")
			if _, err := s.Open(t.Context(), theOwner, p, &good); err != nil {
				t.Errorf("the session has lost its key: %v", err)
			}
		})
	}
}

func make32() []byte { return make([]byte, 32) }

func TestOneOfAThousandCopiesOfARequestForTheNextKeyIsServed(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	c := connectNative(t, s, now, p, "HPKE_P256")
	r := c.rekey()
	var served atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				copied := r
				if _, err := s.Rekey(theOwner, p, &copied); err == nil {
					served.Add(1)
				}
			}
		})
	}
	all.Wait()
	if served.Load() != 1 {
		t.Errorf("%d served", served.Load())
	}
	next := c.next("buy")
	if _, err := s.Open(t.Context(), theOwner, p, &next); err != nil {
		t.Error(err)
	}
}

// Only the key in the slot could open earlier messages.
func TestTheKeyBeforeIsNotKept(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	c := connectNative(t, s, now, p, "HPKE_P256")
	before := slices.Clone(c.secret)
	r := c.rekey()
	if _, err := s.Rekey(theOwner, p, &r); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.memory {
		for slot := range keysOfChunk {
			if string(s.memory[i].Slot(slot)) == string(before) {
				t.Fatal("the store has the key before")
			}
		}
	}
	if string(s.slot(s.sessions[c.id].key)) != string(c.secret) {
		t.Error("the store has another key than the client")
	}
}

func TestANativeSessionHasABoundOfReplies(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, ", MaxMessages: 2")
	c := connectNative(t, s, now, p, "HPKE_P256")
	for i := range 3 {
		_, err := s.SealNative(theOwner, p, c.id, "/a", "1.1", nil)
		if want := i < 2; (err == nil) != want {
			t.Errorf("reply %d: %v", i+1, err)
		}
	}
}

func TestWhatANativeSessionCannotBeginWith(t *testing.T) {
	s, _ := newStore(t)
	point := base64.StdEncoding.EncodeToString(signingPoint(t))
	for sentence, test := range map[string]struct {
		in   Init
		want string
	}{
		"another agreement": {Init{KeyAgreement: "HPKE_P384"}, "keyAgreement is not known"},
		"a nonce":           {Init{KeyAgreement: "HPKE_P256", ClientPublicKey: point, Nonce: "n"}, "nonce is not empty"},
		"a time":            {Init{KeyAgreement: "HPKE_P256", ClientPublicKey: point, Timestamp: "1"}, "timestamp is not empty"},
		"a client id":       {Init{KeyAgreement: "HPKE_P256", ClientPublicKey: point, ClientID: "c"}, "clientId is not empty"},
		"no key":            {Init{KeyAgreement: "HPKE_P256"}, "clientPublicKey is not valid, expected the 65 bytes"},
		"a short key":       {Init{KeyAgreement: "HPKE_XWING", ClientPublicKey: point}, "clientPublicKey is not valid, expected the 1216 bytes"},
		"no point":          {Init{KeyAgreement: "HPKE_P256", ClientPublicKey: base64.StdEncoding.EncodeToString(make([]byte, 65))}, "clientPublicKey is not a public key of HPKE_P256"},
		"a point of small order": {Init{KeyAgreement: "HPKE_XWING", ClientPublicKey: base64.StdEncoding.EncodeToString(make([]byte, 1216))},
			"clientPublicKey is not a public key of HPKE_XWING"},
	} {
		_, err := s.BeginNative(theOwner, nativePolicy(t, ""), test.in, signTranscript)
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func signingPoint(t *testing.T) []byte {
	t.Helper()
	key, err := signingKey.PublicKey.ECDH()
	if err != nil {
		t.Fatal(err)
	}
	return key.Bytes()
}

func TestAProfileWithTheNativeVersionAloneRefusesTheOthers(t *testing.T) {
	s, now := newStore(t)
	p := compiled(t, "Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: k}]")
	for version, clientID := range versions {
		if _, _, err := tryConnect(t, s, now, p, clientID, theOwner); err == nil {
			t.Errorf("%s has a session", version)
		}
	}
	if _, err := s.BeginNative(theOwner, p, Init{KeyAgreement: "HPKE_XWING"}, signTranscript); err == nil {
		t.Error("the other native version has a session")
	}
	connectNative(t, s, now, p, "HPKE_P256")
}

func TestNothingIsKeptOfASessionThatWasNotSigned(t *testing.T) {
	s, _ := newStore(t)
	failed := errors.New("no key")
	point := base64.StdEncoding.EncodeToString(signingPoint(t))
	_, err := s.BeginNative(theOwner, nativePolicy(t, ""), Init{KeyAgreement: "HPKE_P256", ClientPublicKey: point}, func([]byte) ([]byte, error) { return nil, failed })
	if !errors.Is(err, failed) || s.Stats().Sessions != 0 {
		t.Errorf("%v, %d sessions", err, s.Stats().Sessions)
	}
}

func TestASessionOfVersion1HasNoNextKeyAndNoSequence(t *testing.T) {
	s, now := newStore(t)
	p := nativePolicy(t, "")
	old := connect(t, s, now, p, "")
	if _, err := s.SealNative(theOwner, p, old.id, "/a", "1.1", nil); !errors.Is(err, ErrEnded) {
		t.Errorf("a reply with a sequence: %v", err)
	}
	c := connectNative(t, s, now, p, "HPKE_P256")
	var input *InputError
	if _, err := s.Seal(t.Context(), theOwner, p, c.id, "/a", nil); !errors.As(err, &input) || input.Field != "sequence" {
		t.Errorf("a reply without a sequence: %v", err)
	}
	for _, sequence := range []string{"x", "1", "1.", ".1", "0.1", "1.0"} {
		if _, err := s.SealNative(theOwner, p, c.id, "/a", sequence, nil); !errors.As(err, &input) {
			t.Errorf("the sequence %q: %v", sequence, err)
		}
	}
}
