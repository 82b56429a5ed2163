// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// rates is a [Rates] with a time that only the test changes.
type rates struct {
	*testing.T
	*Rates
	time time.Time
}

func newRates(t *testing.T, config Config) *rates {
	t.Helper()
	r := &rates{T: t, time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	config.Now = func() time.Time { return r.time }
	var err error
	if r.Rates, err = NewRates(config); err != nil {
		t.Fatal(err)
	}
	return r
}

func callerOf(subject, tenant string) caller.Caller {
	return caller.Caller{Issuer: "https://issuer.example", Subject: subject, Claims: map[string]any{"org": tenant}}
}

func (r *rates) accept(of caller.Caller, calls int) {
	r.Helper()
	for n := range calls {
		if err := r.Admit(of); err != nil {
			r.Fatalf("call %d of %s: %v", n, of.Subject, err)
		}
	}
}

func (r *rates) refuse(of caller.Caller, text string, after time.Duration) {
	r.Helper()
	refused := (*Refused)(nil)
	if err := r.Admit(of); !errors.As(err, &refused) || !strings.Contains(refused.Error(), text) || refused.RetryAfter != after {
		r.Fatalf("found %v, %+v, expected %q after %s", err, refused, text, after)
	}
}

func TestACallerHasABurstAndThenItsRate(t *testing.T) {
	r := newRates(t, Config{Caller: Rate{2, 5}})
	r.accept(callerOf("alice", ""), 5)
	r.refuse(callerOf("alice", ""), "the caller", 500*time.Millisecond)
	r.refuse(callerOf("alice", ""), "the caller", 500*time.Millisecond) // refused calls cost nothing
	r.time = r.time.Add(500 * time.Millisecond)
	r.accept(callerOf("alice", ""), 1)
	r.refuse(callerOf("alice", ""), "the caller", 500*time.Millisecond)
	r.time = r.time.Add(time.Hour)
	r.accept(callerOf("alice", ""), 5)
	r.refuse(callerOf("alice", ""), "the caller", 500*time.Millisecond)
}

func TestOneCallerTakesNothingFromAnother(t *testing.T) {
	r := newRates(t, Config{Caller: Rate{1, 1}})
	r.accept(callerOf("alice", ""), 1)
	r.refuse(callerOf("alice", ""), "the caller", time.Second)
	r.accept(callerOf("bob", ""), 1)
	other := callerOf("alice", "")
	other.Issuer = "https://other.example"
	r.accept(other, 1)
}

func TestTheCallersOfATenantShareItsRate(t *testing.T) {
	r := newRates(t, Config{Caller: Rate{1, 3}, Tenant: Rate{1, 4}, TenantClaim: "org"})
	r.accept(callerOf("alice", "navy"), 3)
	r.accept(callerOf("bob", "navy"), 1)
	for range 5 {
		r.refuse(callerOf("bob", "navy"), "the tenant", time.Second)
	}
	r.accept(callerOf("carol", "army"), 3)
	other := callerOf("alice", "navy")
	other.Issuer = "https://other.example"
	r.accept(other, 3)
	// The calls that the tenant could not make did not count for bob, who has two left.
	r.time = r.time.Add(time.Second)
	r.accept(callerOf("bob", "navy"), 1)
}

func TestCallersWithoutATenantAreOneTenant(t *testing.T) {
	r := newRates(t, Config{Tenant: Rate{1, 2}, TenantClaim: "org"})
	for n, claims := range []map[string]any{nil, {"org": 5}} {
		r.accept(caller.Caller{Issuer: "i", Subject: fmt.Sprint(n), Claims: claims}, 1)
	}
	r.refuse(caller.Caller{Issuer: "i", Subject: "3"}, "the tenant", time.Second)
}

func TestNoRateIsNoLimit(t *testing.T) {
	r := newRates(t, Config{})
	r.accept(callerOf("alice", "navy"), 1000)
}

// TestManyCallersDoNotMakeOthersForgotten tests an attack: a caller with many names pushes its own bucket out to get a new burst.
func TestManyCallersDoNotMakeOthersForgotten(t *testing.T) {
	r := newRates(t, Config{Caller: Rate{1, 2}, Buckets: 3})
	for _, subject := range []string{"a", "b", "c"} {
		r.accept(callerOf(subject, ""), 2)
	}
	r.accept(callerOf("d", ""), 2) // of the shared bucket
	r.refuse(callerOf("e", ""), "the caller", time.Second)
	r.refuse(callerOf("a", ""), "the caller", time.Second)
	if len(r.callers.known) != 3 || r.callers.order.Len() != 3 {
		t.Errorf("found %d buckets, expected 3", len(r.callers.known))
	}
	// Callers that have not called for long enough are removed to make room, the least recent first.
	r.time = r.time.Add(2 * time.Second)
	r.accept(callerOf("a", ""), 2)
	r.accept(callerOf("e", ""), 2)
	r.refuse(callerOf("a", ""), "the caller", time.Second)
	if _, found := r.callers.known[name{"https://issuer.example", "b"}]; found || len(r.callers.known) != 3 {
		t.Errorf("found %v", r.callers.known)
	}
}

func TestRetryAfterIsInWholeSeconds(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2"} {
		if got := (&Refused{RetryAfter: after}).Seconds(); got != want {
			t.Errorf("found %s for %s, expected %s", got, after, want)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for name, config := range map[string]Config{
		"a rate below zero":         {Caller: Rate{-1, 1}},
		"a rate that is no number":  {Caller: Rate{math.NaN(), 1}},
		"a rate without a burst":    {Caller: Rate{1, 0}},
		"a burst without a rate":    {Caller: Rate{0, 1}},
		"tenants without a claim":   {Tenant: Rate{1, 1}},
		"a claim without a rate":    {TenantClaim: "org"},
		"fewer than no callers":     {Buckets: -1},
		"an infinite rate of calls": {Caller: Rate{math.Inf(1), 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewRates(config); err == nil {
				t.Error("the configuration was accepted")
			}
		})
	}
}
