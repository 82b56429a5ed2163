// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

func testPeer(t *testing.T, timeout time.Duration) *peer {
	t.Helper()
	p, err := newPeer(Peer{Peer: caller.Peer{URL: "https://b.example"}, Timeout: timeout}, Config{Retry: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPeerHasItsTimeAndNotMoreThanTheCallerLessAReserve(t *testing.T) {
	for name, c := range map[string]struct{ caller, timeout, expected time.Duration }{
		"a caller who waits":              {0, 5 * time.Second, 5 * time.Second},
		"a caller who waits for long":     {time.Hour, 5 * time.Second, 5 * time.Second},
		"a caller who waits for less":     {time.Hour, 2 * time.Hour, time.Hour - 250*time.Millisecond},
		"a caller who waits for a little": {time.Second, time.Hour, 800 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.caller)
					defer cancel()
				}
				err := testPeer(t, c.timeout).within(ctx, 1, func(ctx context.Context) error {
					if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != c.expected {
						t.Errorf("found a time of %s, expected %s", time.Until(deadline), c.expected)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Each case makes five requests, more failures than the circuit breaker tolerates.
func TestOnlyFailuresOfThePeerCountForTheBreaker(t *testing.T) {
	late := func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("%w: %w", errFailed, ctx.Err()) }
	gone := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx, cancel
	}
	waiting := func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }
	short := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), 20*time.Millisecond)
	}
	leaves := func(after time.Duration, cause error) func() (context.Context, context.CancelFunc) {
		return func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(after, func() { cancel(cause) })
			return ctx, func() { cancel(nil) }
		}
	}
	for name, c := range map[string]struct {
		caller  func() (context.Context, context.CancelFunc)
		timeout time.Duration
		objects int
		request func(context.Context) error
		opens   bool
	}{
		"a failure":                            {waiting, time.Minute, 1, func(context.Context) error { return errFailed }, true},
		"no reply in the time of the peer":     {waiting, 10 * time.Millisecond, 1, late, true},
		"no reply to a large request":          {waiting, 10 * time.Millisecond, fairObjects + 1, late, false},
		"no reply to a caller who is in haste": {short, time.Minute, 1, late, false},
		"a caller who has gone":                {gone, time.Minute, 1, late, false},
		"a caller who goes after some time":    {leaves(fairTime, nil), time.Minute, 1, late, true},
		"a caller who goes soon":               {leaves(fairTime-time.Millisecond, nil), time.Minute, 1, late, false},
		"a caller with much to do who goes":    {leaves(fairTime, nil), time.Minute, fairObjects + 1, late, false},
		"a share that another one released":    {leaves(fairTime, errSpared), time.Minute, 1, late, false},
		"a request that the peer refuses":      {waiting, time.Minute, 1, func(context.Context) error { return errRefused }, false},
		"a peer with too many requests":        {waiting, time.Minute, 1, func(context.Context) error { return errBusy }, false},
		"a success":                            {waiting, time.Minute, 1, func(context.Context) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := testPeer(t, c.timeout)
				for i := range 5 {
					ctx, cancel := c.caller()
					err := p.within(ctx, c.objects, c.request)
					cancel()
					if refused := errors.Is(err, errNotNow); refused != (c.opens && i >= 3) {
						t.Errorf("request %d: found %v", i, err)
					}
				}
			})
		})
	}
}

func TestACallerWhoGoesIsNoFailureOfAPeerThatAnswersOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPeer(t, time.Minute)
		for range 5 {
			ctx, leave := context.WithCancel(t.Context())
			err := p.within(ctx, 1, func(ctx context.Context) error {
				if err := p.within(t.Context(), 1, func(context.Context) error { return errRefused }); !errors.Is(err, errRefused) {
					t.Errorf("another request: found %v", err)
				}
				time.AfterFunc(2*fairTime, leave)
				<-ctx.Done()
				return ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("found %v", err)
			}
		}
	})
}

func TestFailuresCountTogetherWithinThirtySeconds(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		opens bool
	}{"three within the time": {10 * time.Second, true}, "three within a longer time": {18 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := testPeer(t, time.Minute)
				for range 3 {
					_ = p.within(t.Context(), 1, func(context.Context) error { return errFailed }) // it fails
					_ = p.within(t.Context(), 1, func(context.Context) error { return nil })       // a success between failures does not help
					<-time.After(c.pause)                                                          // the time of the bubble
				}
				if open := p.breaker.State() == gobreaker.StateOpen; open != c.opens {
					t.Errorf("the breaker is open: %t, expected %t", open, c.opens)
				}
			})
		})
	}
}

func TestOneRequestSaysWhetherAPeerWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPeer(t, time.Minute)
		for range 3 {
			_ = p.within(t.Context(), 1, func(context.Context) error { return errFailed }) // it fails
		}
		<-time.After(time.Hour + time.Second) // the time of the bubble
		err := p.within(t.Context(), 1, func(ctx context.Context) error {
			if err := p.within(ctx, 1, func(context.Context) error { return nil }); !errors.Is(err, errNotNow) {
				t.Errorf("a second request at the same time: found %v", err)
			}
			return nil
		})
		if err != nil || p.breaker.State() != gobreaker.StateClosed {
			t.Errorf("found %v and the state %s", err, p.breaker.State())
		}
	})
}

func TestARequestThatPanicsCountsAsAFailure(t *testing.T) {
	p := testPeer(t, time.Minute)
	for range 3 {
		func() {
			defer func() { _ = recover() }() // only later requests matter for this test
			_ = p.within(t.Context(), 1, func(context.Context) error { panic("a defect") })
		}()
	}
	if err := p.within(t.Context(), 1, func(context.Context) error { return nil }); !errors.Is(err, errNotNow) {
		t.Errorf("found %v", err)
	}
}

func TestAServiceIsNamedByURLsThatMeanTheSame(t *testing.T) {
	for text, expected := range map[string]string{
		"https://keys.example": "https://keys.example", "https://KEYS.example/": "https://keys.example", "https://keys.example:443/kas": "https://keys.example",
		"https://keys.example/kas/": "https://keys.example", "https://keys.example:8443": "https://keys.example:8443", "http://keys.example": "http://keys.example",
		"": "", "keys.example": "", "https://keys.example/other": "", "https://user@keys.example": "", "https://keys.example?x": "", "https://": "", "ftp://keys.example": "", "https://[": "",
	} {
		if found, ok := origin(text); found != expected || ok != (expected != "") {
			t.Errorf("%q: found %q, %t, expected %q", text, found, ok, expected)
		}
	}
}
