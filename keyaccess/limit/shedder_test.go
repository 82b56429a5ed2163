// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newShedder(t *testing.T, load Load) *Shedder {
	t.Helper()
	s, err := NewShedder(load)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func enter(t *testing.T, s *Shedder) func() {
	t.Helper()
	leave, err := s.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestCallsBeyondTheQueueAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShedder(t, Load{InFlight: 1, Queue: 2, Wait: 5 * time.Second})
		leave := enter(t, s)
		var served sync.WaitGroup
		for range 2 {
			served.Go(func() { enter(t, s)() })
		}
		synctest.Wait() // both are in the queue
		began := time.Now()
		_, err := s.Enter(t.Context())
		if refused := (*Refused)(nil); !errors.As(err, &refused) || refused.RetryAfter != 5*time.Second || time.Since(began) != 0 {
			t.Errorf("found %v after %s", err, time.Since(began))
		}
		leave()
		served.Wait()
		enter(t, s)()
	})
}

func TestACallWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShedder(t, Load{InFlight: 1, Queue: 1, Wait: 5 * time.Second})
		leave := enter(t, s)
		began := time.Now()
		_, err := s.Enter(t.Context())
		if refused := (*Refused)(nil); !errors.As(err, &refused) || time.Since(began) != 5*time.Second {
			t.Errorf("found %v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("found %v, expected the error of the context", err)
		}
		leave()
		enter(t, s)() // neither of them still has a place
	})
}

func TestLoadsThatAreRefused(t *testing.T) {
	for name, load := range map[string]Load{
		"nothing in flight":         {},
		"a queue without a wait":    {InFlight: 1, Queue: 1},
		"a queue of less than zero": {InFlight: 1, Queue: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewShedder(load); err == nil {
				t.Error("the load was accepted")
			}
		})
	}
}

// TestSheddingKeepsServedCallsServed sends ten times the load that a server can handle, over real connections. Accepted calls do
// not wait for calls that the server cannot serve: there are never more of them than allowed, and all other calls are refused.
func TestSheddingKeepsServedCallsServed(t *testing.T) {
	const inFlight, queue, clients, callsOfEach = 4, 4, 80, 10
	s := newShedder(t, Load{InFlight: inFlight, Queue: queue, Wait: time.Minute})
	var mu sync.Mutex
	var working, most int
	// The first calls wait until one call is refused, so there is too much load on a machine of any speed.
	overloaded := make(chan struct{})
	overload := sync.OnceFunc(func() { close(overloaded) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := s.Enter(r.Context())
		if refused := (*Refused)(nil); errors.As(err, &refused) {
			w.Header().Set("Retry-After", refused.Seconds())
			w.WriteHeader(http.StatusTooManyRequests)
			overload()
			return
		}
		if err != nil {
			return // the client has gone
		}
		defer leave()
		mu.Lock()
		working++
		most = max(most, working)
		mu.Unlock()
		<-overloaded
		<-time.After(2 * time.Millisecond) // the key manager
		mu.Lock()
		working--
		mu.Unlock()
	}))
	defer server.Close()
	server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = clients

	results := map[int]int{}
	var slowest time.Duration
	var calls sync.WaitGroup
	for range clients {
		calls.Go(func() {
			for range callsOfEach {
				began := time.Now()
				reply, err := server.Client().Get(server.URL)
				if err != nil {
					t.Error(err)
					return
				}
				reply.Body.Close()
				mu.Lock()
				results[reply.StatusCode]++
				if reply.StatusCode == http.StatusOK {
					slowest = max(slowest, time.Since(began))
				} else if reply.Header.Get("Retry-After") != "60" {
					t.Errorf("found Retry-After %q", reply.Header.Get("Retry-After"))
				}
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	t.Logf("results %v, slowest %s, most at one time %d", results, slowest, most)
	if results[http.StatusOK]+results[http.StatusTooManyRequests] != clients*callsOfEach || results[http.StatusOK] == 0 || results[http.StatusTooManyRequests] == 0 {
		t.Errorf("found %v, expected calls that are served and calls that are refused", results)
	}
	if most > inFlight {
		t.Errorf("found %d calls at one time, expected at most %d", most, inFlight)
	}
	// A call that is served waits for at most the queue, some 4 ms; without shedding it would wait for all clients.
	if slowest > 30*time.Second {
		t.Errorf("a call that was served took %s", slowest)
	}
}
