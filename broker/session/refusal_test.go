// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// recordedAEAD records what is decrypted.
type recordedAEAD struct {
	cipher.AEAD
	record func(step string)
}

func (a recordedAEAD) Open(to, iv, sealed, additional []byte) ([]byte, error) {
	a.record(fmt.Sprintf("decrypt %d KiB", len(sealed)>>10)) // in KiB, because the sizes of the texts differ by some bytes
	return a.AEAD.Open(to, iv, sealed, additional)
}

// recordSteps makes a store record the steps of calls: which it is asked to do with keys, and how often it looks at the
// clock, which it does once to look a session up and once to accept a request.
func recordSteps(s *Store) *[]string {
	var steps []string
	record := func(step string) { steps = append(steps, step) }
	now, gcm := s.now, s.gcm
	s.now = func() time.Time { record("time"); return now() }
	s.gcm = func(key []byte) (cipher.AEAD, error) {
		record("key")
		aead, err := gcm(key)
		return recordedAEAD{aead, record}, err
	}
	return &steps
}

// refusal is a request that is refused.
type refusal func(t testing.TB, s *Store, now *clock, c *client) (Request, Owner)

// changed is a request in which something was changed.
func changed(change func(c *client, r *Request)) refusal {
	return func(_ testing.TB, _ *Store, _ *clock, c *client) (Request, Owner) {
		r := c.request(noon, purchase)
		change(c, &r)
		return r, theOwner
	}
}

// requestAfter is a request before which something has happened.
func requestAfter(happens func(t testing.TB, s *Store, now *clock, c *client, r *Request)) refusal {
	return func(t testing.TB, s *Store, now *clock, c *client) (Request, Owner) {
		r := c.request(noon, purchase)
		happens(t, s, now, c, &r)
		return r, theOwner
	}
}

// purchase is the plaintext of the requests. It is so long that the times would show if one refusal did not decrypt it.
var purchase = strings.Repeat("purchase", 1<<10)

// refusals are requests for each reason to refuse one.
var refusals = map[string]refusal{
	"not authentic": changed(func(_ *client, r *Request) {
		if r.Body[0]++; r.Body[0] != 'B' {
			r.Body[0] = 'A' // the text is valid base64, too
		}
	}),
	"an unknown session": changed(func(_ *client, r *Request) { r.Kid = kidPrefix + newID() }),
	"no session":         changed(func(_ *client, r *Request) { r.Kid = "" }),
	"another cipher":     changed(func(_ *client, r *Request) { r.EncAlg = "A128GCM" }),
	"no time": changed(func(_ *client, r *Request) {
		r.Timestamp, r.IdempotencyKey = "", strings.TrimLeft(r.IdempotencyKey, "0123456789")
	}),
	"a path with a query":  changed(func(_ *client, r *Request) { r.Path += "?a" }),
	"headers of two kinds": changed(func(_ *client, r *Request) { r.ClientID, r.IV = r.ClientID+"x", r.IV+"x" }),
	"another caller": func(_ testing.TB, _ *Store, _ *clock, c *client) (Request, Owner) {
		other := theOwner
		other.Caller.UID++
		return c.request(noon, purchase), other
	},
	"a session that was closed": requestAfter(func(_ testing.TB, s *Store, _ *clock, c *client, _ *Request) { s.end(theOwner, c.id) }),
	"a session that is over":    requestAfter(func(_ testing.TB, _ *Store, now *clock, _ *client, _ *Request) { now.add(time.Hour) }),
	"a request that is too old": requestAfter(func(_ testing.TB, _ *Store, now *clock, _ *client, _ *Request) { now.add(6 * time.Minute) }),
	"a request that is too new": requestAfter(func(_ testing.TB, _ *Store, now *clock, _ *client, _ *Request) { now.add(-6 * time.Minute) }),
	"a request that was opened": requestAfter(func(t testing.TB, s *Store, _ *clock, _ *client, r *Request) {
		if _, err := s.Open(t.Context(), theOwner, policy(t, ""), r); err != nil {
			t.Fatal(err)
		}
	}),
}

func TestARefusalTakesTheSameStepsWhateverIsWrong(t *testing.T) {
	for version, clientID := range versions {
		want := []string{"time", "key", "decrypt 8 KiB", "time"}
		for sentence, refused := range refusals {
			t.Run(version+", "+sentence, func(t *testing.T) {
				s, now := newStore(t)
				p := policy(t, "")
				r, owner := refused(t, s, now, connect(t, s, now, p, clientID))
				steps := recordSteps(s)
				if _, err := s.Open(t.Context(), owner, p, &r); !errors.Is(err, ErrRefused) {
					t.Fatal(err)
				}
				if !slices.Equal(*steps, want) {
					t.Errorf("it took the steps %q, want %q", *steps, want)
				}
			})
		}
	}
}

// Compare only rows of the same version. p10-ns is the 10th percentile of the times, which other work of the machine disturbs least.
func BenchmarkRefusal(b *testing.B) {
	for version, clientID := range versions {
		for sentence, refused := range refusals {
			b.Run(version+", "+sentence, func(b *testing.B) {
				s, now := newStore(b)
				p := policy(b, "")
				r, owner := refused(b, s, now, connect(b, s, now, p, clientID))
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					_, err := s.Open(b.Context(), owner, p, &r)
					took = append(took, time.Since(began))
					if !errors.Is(err, ErrRefused) {
						b.Fatal(err)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/10].Nanoseconds()), "p10-ns")
			})
		}
	}
}
