// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// A request whose time is ahead of the clock of the broker can be opened for longer than a window
// after its first use.
func TestARequestFromTheFutureIsNotOpenedAgainBeforeItIsTooOld(t *testing.T) {
	eachStore(t, func(t *testing.T, start func(testing.TB) *replicas) {
		brokers := start(t)
		now := brokers.clock
		p := brokers.policy(t, "")
		c := connect(t, brokers.any(), now, p, "")
		r := c.request(noon.Add(290*time.Second), "buy")
		if _, err := brokers.any().Open(t.Context(), theOwner, p, &r); err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, 301 * time.Second, 302 * time.Second, 590 * time.Second, 590*time.Second + time.Millisecond, 700 * time.Second} {
			now.set(noon.Add(after))
			brokers.sweep()
			if _, err := brokers.any().Open(t.Context(), theOwner, p, &r); !errors.Is(err, ErrRefused) {
				t.Errorf("after %s: %v", after, err)
			}
		}
	})
}

func TestTheEdgesOfTheWindowAreTheLastTimesThatAreOpened(t *testing.T) {
	eachStore(t, func(t *testing.T, start func(testing.TB) *replicas) {
		for _, window := range []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute} {
			brokers := start(t)
			now := brokers.clock
			p := brokers.policy(t, fmt.Sprintf(", ClockWindow: %s", window))
			c := connect(t, brokers.any(), now, p, "")
			for _, test := range []struct {
				ahead time.Duration
				fine  bool
			}{
				{-window - time.Millisecond, false}, {-window, true}, {-window + time.Millisecond, true}, {0, true},
				{window - time.Millisecond, true}, {window, true}, {window + time.Millisecond, false},
			} {
				r := c.request(noon.Add(test.ahead), "text")
				if _, err := brokers.any().Open(t.Context(), theOwner, p, &r); (err == nil) != test.fine {
					t.Errorf("window %s, time %s: %v", window, test.ahead, err)
				}
			}
		}
	})
}

// The clocks of two brokers differ by up to two windows, and change. One broker may open a request that the other one refuses as
// too old or too new. Never do both open it.
func TestNoRequestIsOpenedTwiceWhereTheClocksOfBrokersDiffer(t *testing.T) {
	eachStore(t, func(t *testing.T, start func(testing.TB) *replicas) {
		const window = 10 * time.Second
		twice := 0 // how often a request was sent again after a broker had opened it
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 16))
			brokers := start(t)
			now := brokers.clock
			p := brokers.policy(t, ", ClockWindow: 10s")
			c := connect(t, brokers.any(), now, p, "")
			var sent []Request
			opened := map[int]bool{}
			for range 300 {
				switch random.IntN(8) {
				case 0, 1:
					at := now.read().Add(time.Duration(random.Int64N(int64(4*window))) - 2*window)
					sent = append(sent, c.request(at, "text"))
				case 2:
					now.add(time.Duration(random.Int64N(int64(6*time.Second))) - 2*time.Second)
				case 3:
					if n := len(brokers.ahead); n > 0 {
						brokers.ahead[random.IntN(n)].Store(random.Int64N(int64(4*window)) - int64(2*window))
					}
				default:
					if len(sent) == 0 {
						continue
					}
					i := random.IntN(len(sent))
					if opened[i] {
						twice++
					}
					if _, err := brokers.stores[random.IntN(len(brokers.stores))].Open(t.Context(), theOwner, p, &sent[i]); err != nil {
						continue
					}
					if opened[i] {
						t.Fatalf("seed %d: opened a request twice", seed)
					}
					opened[i] = true
				}
			}
		}
		if twice < 100 {
			t.Errorf("requests that had been opened came only %d times", twice)
		}
	})
}

// TestNoRequestIsOpenedTwice sets the clock forward and back to any time, with and without sweeps in
// between, and sends all requests again and again, most of them near an edge of the window.
func TestNoRequestIsOpenedTwice(t *testing.T) {
	eachStore(t, func(t *testing.T, start func(testing.TB) *replicas) {
		const window = 10 * time.Second
		const seeds = 60
		tested := 0
		for seed := range uint64(seeds) {
			random := rand.New(rand.NewPCG(seed, 15))
			brokers := start(t)
			now := brokers.clock
			p, smaller := brokers.policy(t, ", ClockWindow: 10s"), brokers.policy(t, ", ClockWindow: 3s")
			larger := brokers.policy(t, ", ClockWindow: 5m")
			c := connect(t, brokers.any(), now, p, []string{"", "shop-1"}[seed%2])
			var sent []Request
			var times []time.Time
			opened := map[int]bool{}
			for range 300 {
				switch random.IntN(10) {
				case 0, 1:
					at := now.read().Add(time.Duration(random.Int64N(int64(2*window))) - window)
					sent, times = append(sent, c.request(at, "text")), append(times, at)
				case 2:
					now.add(time.Duration(random.Int64N(int64(8 * time.Second))))
				case 3:
					now.add(-time.Duration(random.Int64N(int64(4 * time.Second))))
				case 4:
					brokers.sweep()
				case 5: // an edge of the window of a request
					if len(times) > 0 {
						edge := times[random.IntN(len(times))].Add([]time.Duration{-window, window}[random.IntN(2)])
						now.set(edge.Add(time.Duration(random.IntN(5)-2) * time.Millisecond))
					}
				case 6:
					if random.IntN(10) == 0 {
						brokers.restart(random.IntN(len(brokers.stores)))
					}
				default:
					if len(sent) == 0 {
						continue
					}
					i := random.IntN(len(sent))
					using := []*profile.SessionPolicy{p, p, smaller, larger}[random.IntN(4)]
					if _, err := brokers.any().Open(t.Context(), theOwner, using, &sent[i]); err == nil {
						if away := now.read().Sub(times[i]).Abs(); away > window+time.Millisecond {
							t.Fatalf("seed %d: opened a request %s away from the clock", seed, away)
						}
						if opened[i] {
							t.Fatalf("seed %d: opened a request twice", seed)
						}
						opened[i] = true
					}
				}
			}
			if len(opened) > 0 {
				tested++
			}
		}
		if tested < seeds/2 {
			t.Errorf("only %d of %d seeds have opened a request", tested, seeds)
		}
	})
}

func TestOneOfAThousandCopiesAtOneTimeIsOpened(t *testing.T) {
	eachStore(t, func(t *testing.T, start func(testing.TB) *replicas) {
		brokers := start(t)
		now := brokers.clock
		p := brokers.policy(t, "")
		c := connect(t, brokers.any(), now, p, "")
		r := c.request(noon, "buy")
		var opened, refused atomic.Int32
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 1000 {
			all.Go(func() {
				s := brokers.any()
				<-begin
				switch _, err := s.Open(t.Context(), theOwner, p, &r); {
				case err == nil:
					opened.Add(1)
				case errors.Is(err, ErrRefused):
					refused.Add(1)
				}
			})
		}
		close(begin)
		all.Wait()
		if opened.Load() != 1 || refused.Load() != 999 {
			t.Errorf("%d opened, %d refused", opened.Load(), refused.Load())
		}
	})
}

func TestWhoHasNoKeyUsesUpNoNonce(t *testing.T) {
	eachStore(t, func(t *testing.T, start func(testing.TB) *replicas) {
		brokers := start(t)
		now := brokers.clock
		p := brokers.policy(t, "")
		victim, other := connect(t, brokers.any(), now, p, ""), connect(t, brokers.any(), now, p, "")
		r := victim.request(noon, "buy")
		forged := r
		forged.Tag = base64.StdEncoding.EncodeToString(make([]byte, 16))
		for range 3 {
			if _, err := brokers.any().Open(t.Context(), theOwner, p, &forged); !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
		}
		// Requests of the attacker's own session do not affect the nonces of another session.
		same := other.requestTo("/other", noon, r.Nonce, "text")
		if _, err := brokers.any().Open(t.Context(), theOwner, p, &same); err != nil {
			t.Fatal(err)
		}
		if stats := brokers.stores[0].Stats(); stats.Sessions > 0 && stats.Nonces != 1 {
			t.Errorf("%d nonces are remembered", stats.Nonces)
		}
		if _, err := brokers.any().Open(t.Context(), theOwner, p, &r); err != nil {
			t.Errorf("the request whose nonce was used in forged ones: %v", err)
		}
	})
}
