// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// versions are the client ids by the version of the protocol that they select.
var versions = map[string]string{"session-v1": "", "session-v2": "shop-1"}

func TestAClientSendsARequestAndReadsTheReply(t *testing.T) {
	for version, clientID := range versions {
		t.Run(version, func(t *testing.T) {
			s, now := newStore(t)
			p := policy(t, "")
			c := connect(t, s, now, p, clientID)
			for _, plaintext := range []string{"", "text", strings.Repeat("long", 10000)} {
				r := c.request(noon, plaintext)
				opened, err := s.Open(t.Context(), theOwner, p, &r)
				if err != nil || string(opened.Plaintext) != plaintext || opened.ID != c.id || opened.Path != "/transaction/purchase" ||
					opened.Protocol.String() != version || opened.ClientID != clientID {
					t.Fatalf("opened %+v, %v", opened, err)
				}
				reply, err := s.Seal(t.Context(), theOwner, p, c.id, opened.ClientPath, []byte(plaintext+"!"))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.read("/transaction/purchase", reply); err != nil || got != plaintext+"!" {
					t.Errorf("the client reads %q, %v", got, err)
				}
			}
		})
	}
}

// In this mode, Go fails operations that FIPS 140-3 does not approve.
func TestSessionsUseApprovedAlgorithmsAlone(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAClientSendsARequestAndReadsTheReply$", "-test.v")
	child.Env = append(os.Environ(), "GODEBUG=fips140=only")
	output, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: TestAClientSendsARequestAndReadsTheReply") {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestAReplyIsNoRequest(t *testing.T) {
	for version, clientID := range versions {
		t.Run(version, func(t *testing.T) {
			s, now := newStore(t)
			p := policy(t, "")
			c := connect(t, s, now, p, clientID)
			reply, err := s.Seal(t.Context(), theOwner, p, c.id, "/a", []byte("paid"))
			if err != nil {
				t.Fatal(err)
			}
			for _, method := range []string{"POST", "GET", "200"} {
				r := Request{
					Method: method, Path: "/a", Kid: reply.Kid, EncAlg: reply.EncAlg, IV: reply.IV, Tag: reply.Tag, AAD: reply.AAD,
					Nonce: reply.Nonce, Timestamp: reply.Timestamp, IdempotencyKey: reply.IdempotencyKey, ClientID: reply.ClientID, Body: reply.Body,
				}
				if _, err := s.Open(t.Context(), theOwner, p, &r); !errors.Is(err, ErrRefused) {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
}

func TestASessionHasABoundOfMessagesInEachDirection(t *testing.T) {
	s, now := newStore(t)
	p := policy(t, ", MaxMessages: 3")
	c := connect(t, s, now, p, "")
	for i := range 5 {
		r := c.request(noon, "text")
		_, err := s.Open(t.Context(), theOwner, p, &r)
		if want := i >= 3; errors.Is(err, ErrRefused) != want || err == nil == want {
			t.Errorf("request %d: %v", i+1, err)
		}
	}
	for i := range 5 {
		_, err := s.Seal(t.Context(), theOwner, p, c.id, "/a", nil)
		if want := i >= 3; errors.Is(err, ErrEnded) != want || err == nil == want {
			t.Errorf("reply %d: %v", i+1, err)
		}
	}
	if most := uint64(2 * profile.MaxSessionMessages); most > 1<<31 {
		t.Errorf("a key may have %d messages, half of the 2^32 that NIST SP 800-38D allows are for lost ones", most)
	}
}

// Nobody can find out from the error what was wrong with a request.
func TestWhateverIsWrongWithARequestTheErrorIsTheSame(t *testing.T) {
	flip := func(text string) string {
		decoded, _ := base64.StdEncoding.DecodeString(text)
		decoded[0] ^= 1
		return base64.StdEncoding.EncodeToString(decoded)
	}
	stranger := theOwner
	stranger.Caller.UID = 1
	otherProfile := theOwner
	otherProfile.Profile = "Q"
	for sentence, change := range map[string]func(s *Store, now *clock, c *client, r *Request, o *Owner){
		"another key":                   func(_ *Store, _ *clock, c *client, r *Request, _ *Owner) { r.Tag = flip(r.Tag) },
		"a changed ciphertext":          func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Body = []byte(flip(string(r.Body))) },
		"a changed IV":                  func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.IV = flip(r.IV) },
		"another nonce":                 func(_ *Store, _ *clock, c *client, r *Request, _ *Owner) { r.Nonce, r.AAD = c.nonce(), "" },
		"another nonce than in the AAD": func(_ *Store, _ *clock, c *client, r *Request, _ *Owner) { r.Nonce = c.nonce() },
		"another time":                  func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Timestamp, r.AAD = "1795435200001", "" },
		"a time with a zero in front":   func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Timestamp = "0" + r.Timestamp },
		"another method":                func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Method = "PUT" },
		"another path":                  func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Path = "/admin" },
		"another path without an AAD":   func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Path, r.AAD = "/admin", "" },
		"a query":                       func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Path += "?admin=1" },
		"another cipher":                func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.EncAlg = "A128GCM" },
		"no cipher":                     func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.EncAlg = "" },
		"an unknown session":            func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Kid = "session:" + newID() },
		"no session":                    func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Kid = "" },
		"a line break in the body":      func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.Body = append([]byte("\n"), r.Body...) },
		"a header of the other version": func(_ *Store, _ *clock, _ *client, r *Request, _ *Owner) { r.ClientID = "shop" },
		"another caller":                func(_ *Store, _ *clock, _ *client, _ *Request, o *Owner) { *o = stranger },
		"another profile":               func(_ *Store, _ *clock, _ *client, _ *Request, o *Owner) { *o = otherProfile },
		"a session that was closed":     func(s *Store, _ *clock, c *client, _ *Request, _ *Owner) { s.end(theOwner, c.id) },
		"a session that has expired":    func(_ *Store, now *clock, _ *client, _ *Request, _ *Owner) { now.add(time.Hour) },
		"a request that is too old":     func(_ *Store, now *clock, _ *client, _ *Request, _ *Owner) { now.add(301 * time.Second) },
		"a request that is too new":     func(_ *Store, now *clock, _ *client, _ *Request, _ *Owner) { now.add(-301 * time.Second) },
	} {
		t.Run(sentence, func(t *testing.T) {
			s, now := newStore(t)
			p := policy(t, "")
			c := connect(t, s, now, p, "")
			r, owner := c.request(noon, "text"), theOwner
			change(s, now, c, &r, &owner)
			if opened, err := s.Open(t.Context(), owner, p, &r); err != ErrRefused || opened.Plaintext != nil { //nolint:errorlint // it has to be this error and no other
				t.Errorf("%v, %q", err, opened.Plaintext)
			}
		})
	}
}

func TestTheSameRequestIsRefusedTheSecondTime(t *testing.T) {
	for version, clientID := range versions {
		t.Run(version, func(t *testing.T) {
			s, now := newStore(t)
			p := policy(t, "")
			c := connect(t, s, now, p, clientID)
			r := c.request(noon, "text")
			if _, err := s.Open(t.Context(), theOwner, p, &r); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(t.Context(), theOwner, p, &r); !errors.Is(err, ErrRefused) {
				t.Error(err)
			}
		})
	}
}

func TestTheKeyOfASessionThatHasEndedIsOverwritten(t *testing.T) {
	for sentence, end := range map[string]func(*Store, *clock, *client){
		"closed":               func(s *Store, _ *clock, c *client) { s.end(theOwner, c.id) },
		"expired and swept":    func(s *Store, now *clock, _ *client) { now.add(time.Hour); s.sweep() },
		"not allowed any more": func(s *Store, _ *clock, _ *client) { s.Keep(func(Owner) *profile.SessionPolicy { return nil }) },
		"of a protocol that is not allowed any more": func(s *Store, _ *clock, _ *client) {
			set, _ := profile.Compile(profile.FileName, []byte("- Name: P\n  API: {Session: {Protocols: [session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}\n"))
			compiled, _ := set.Lookup("P")
			s.Keep(func(Owner) *profile.SessionPolicy { return compiled.Session() })
		},
		"older than is allowed now": func(s *Store, now *clock, c *client) {
			now.add(2 * time.Minute)
			var key [keySize]byte
			s.find(theOwner, policy(t, ", MinLifetime: 1m, MaxLifetime: 2m"), c.id, &key)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, now := newStore(t)
			p := policy(t, "")
			c := connect(t, s, now, p, "")
			r := c.request(noon, "text")
			if _, err := s.Open(t.Context(), theOwner, p, &r); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(s.memory[0].Bytes(), c.key) {
				t.Fatal("the key is not in the memory for keys")
			}
			end(s, now, c)
			if bytes.Contains(s.memory[0].Bytes(), c.key[:8]) {
				t.Error("the key is still in memory")
			}
			if got := s.Stats(); got != (Stats{MostOfSocket: MaxSessions}) {
				t.Errorf("there are %+v", got)
			}
			if _, err := s.Seal(t.Context(), theOwner, p, c.id, "/a", nil); !errors.Is(err, ErrEnded) {
				t.Errorf("a reply: %v", err)
			}
		})
	}
}

func TestASessionWhoseTimeIsOverEndsByItself(t *testing.T) {
	s, now := newStore(t)
	s.every = time.Millisecond
	connect(t, s, now, policy(t, ""), "")
	now.add(time.Hour)
	for deadline := time.Now().Add(time.Minute); s.Stats().Sessions > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the session is still there")
		}
	}
}

func TestAClosedStoreHasNoSessions(t *testing.T) {
	s, now := newStore(t)
	p := policy(t, "")
	c := connect(t, s, now, p, "")
	r := c.request(noon, "text")
	s.Close()
	if _, err := s.Open(t.Context(), theOwner, p, &r); !errors.Is(err, ErrRefused) {
		t.Errorf("a request: %v", err)
	}
	if _, _, err := tryConnect(t, s, now, p, "", theOwner); !errors.Is(err, ErrFull) {
		t.Errorf("a new session: %v", err)
	}
	if got := s.Stats(); got != (Stats{MostOfSocket: MaxSessions}) || s.memory != nil || s.sweeper != nil {
		t.Errorf("there are %+v, memory of %d pieces, and the timer %v", got, len(s.memory), s.sweeper)
	}
}

func TestTheSocketsHaveEqualPartsOfTheSessions(t *testing.T) {
	s, now := newStore(t)
	s.Limit(7*MemoryOfSession, 2) // three each
	p := policy(t, "")
	other := theOwner
	other.Socket = "worker"
	for range 3 {
		connect(t, s, now, p, "")
	}
	full, _, err := tryConnect(t, s, now, p, "", theOwner)
	if !errors.Is(err, ErrFull) {
		t.Errorf("a session above the part: %v, %v", full, err)
	}
	connectAs(t, s, now, p, "", other)
	now.add(time.Hour)
	s.sweep()
	connect(t, s, now, p, "")
}

func TestNoncesThatFillTheMemoryAreRefusedUntilSomeAreForgotten(t *testing.T) {
	s, now := newStore(t)
	s.Limit(2*MemoryOfSession, 2) // eight nonces for each socket, and two of them for each session
	p := policy(t, ", ClockWindow: 10s")
	c := connect(t, s, now, p, "")
	for i := range 3 {
		r := c.request(now.read(), "text")
		if _, err := s.Open(t.Context(), theOwner, p, &r); errors.Is(err, ErrBusy) != (i == 2) {
			t.Errorf("request %d: %v", i+1, err)
		}
	}
	now.add(31 * time.Second)
	r := c.request(now.read(), "text")
	if _, err := s.Open(t.Context(), theOwner, p, &r); err != nil {
		t.Errorf("after some were forgotten: %v", err)
	}
	if got := s.Stats().Nonces; got != 1 {
		t.Errorf("%d nonces are remembered", got)
	}
}

func TestTheLifetimeOfASessionIsWithinTheBoundsOfItsProfile(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		0: 5 * time.Minute, 299 * time.Second: 5 * time.Minute, 1800 * time.Second: 30 * time.Minute,
		3601 * time.Second: time.Hour, 1<<32*time.Second - 1: time.Hour,
	} {
		if got := policy(t, "").Lifetime(asked); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
}

func TestAWrongRequestForASessionIsRefusedWithTheNameOfItsField(t *testing.T) {
	s, now := newStore(t)
	fine := Init{
		KeyAgreement: "ECDH_P256", Nonce: "n", Timestamp: strconv.FormatInt(now.read().UnixMilli(), 10),
		ClientPublicKey: "BGsX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT+NC4v4af5uO5+tKfA+eFivOM1drMV7Oy7ZAaDe/UfU=", // the base point of the curve
	}
	p := policy(t, "")
	if _, err := s.Begin(t.Context(), theOwner, p, fine); err != nil {
		t.Fatal(err)
	}
	point, _ := base64.StdEncoding.DecodeString(fine.ClientPublicKey)
	for sentence, test := range map[string]struct {
		change func(*Init)
		field  string
	}{
		"another key agreement": {func(i *Init) { i.KeyAgreement = "X25519" }, "keyAgreement"},
		"no public key":         {func(i *Init) { i.ClientPublicKey = "" }, "clientPublicKey"},
		"a compressed public key": {func(i *Init) {
			i.ClientPublicKey = base64.StdEncoding.EncodeToString(append([]byte{3}, point[1:33]...))
		}, "clientPublicKey"},
		"a point that is not on the curve": {func(i *Init) {
			wrong := bytes.Clone(point)
			wrong[64] ^= 1
			i.ClientPublicKey = base64.StdEncoding.EncodeToString(wrong)
		}, "clientPublicKey"},
		"the point at infinity":  {func(i *Init) { i.ClientPublicKey = base64.StdEncoding.EncodeToString(make([]byte, 65)) }, "clientPublicKey"},
		"no nonce":               {func(i *Init) { i.Nonce = "" }, "nonce"},
		"a nonce with a bar":     {func(i *Init) { i.Nonce = "a|b" }, "nonce"},
		"a long nonce":           {func(i *Init) { i.Nonce = strings.Repeat("n", 65) }, "nonce"},
		"no time":                {func(i *Init) { i.Timestamp = "" }, "timestamp"},
		"an old time":            {func(i *Init) { i.Timestamp = strconv.FormatInt(noon.UnixMilli()-300001, 10) }, "timestamp"},
		"a time ahead":           {func(i *Init) { i.Timestamp = strconv.FormatInt(noon.UnixMilli()+300001, 10) }, "timestamp"},
		"a client id with a bar": {func(i *Init) { i.ClientID = "a|b" }, "clientId"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := fine
			test.change(&in)
			var wrong *InputError
			if _, err := s.Begin(t.Context(), theOwner, p, in); !errors.As(err, &wrong) || wrong.Field != test.field {
				t.Errorf("%v", err)
			}
		})
	}
}
