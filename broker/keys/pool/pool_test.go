// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is a key manager with several servers. Faults are injected into it.
type manager struct {
	mu      sync.Mutex
	servers map[string]*server
}

type server struct {
	// down reports whether the server refuses new connections and breaks existing ones.
	down bool
	// hangs reports whether the server accepts requests and never answers.
	hangs bool
	// silent reports whether the server never answers a new connection.
	silent bool
	// takes is how long a request takes.
	takes time.Duration

	epoch              int // one more with each restart: older connections are broken
	open, most, dialed int
	requests, pings    int
}

var errBroken = fmt.Errorf("%w: the connection is broken", keys.ErrUnavailable)

func newManager(addresses ...string) *manager {
	m := &manager{servers: map[string]*server{}}
	for _, address := range addresses {
		m.servers[address] = &server{takes: time.Millisecond}
	}
	return m
}

func (m *manager) dial(ctx context.Context, address string) (*wire, error) {
	if m.of(address).silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[address]
	if s.down {
		return nil, fmt.Errorf("%w: %s refuses connections", keys.ErrUnavailable, address)
	}
	s.dialed++
	s.open++
	s.most = max(s.most, s.open)
	return &wire{manager: m, server: s, address: address, epoch: s.epoch}, nil
}

// change changes a server.
func (m *manager) change(address string, change func(*server)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m.servers[address])
}

func (m *manager) of(address string) server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.servers[address]
}

// wire is a connection to a server.
type wire struct {
	manager *manager
	server  *server
	address string
	epoch   int
	broken  bool
}

func (w *wire) Broken() bool { return w.broken }

func (w *wire) Ping(ctx context.Context) error {
	w.manager.change(w.address, func(s *server) { s.pings++ })
	return w.exchange(ctx)
}

func (w *wire) request(ctx context.Context) error {
	w.manager.change(w.address, func(s *server) { s.requests++ })
	return w.exchange(ctx)
}

func (w *wire) exchange(ctx context.Context) error {
	s := w.manager.of(w.address)
	if s.down || s.epoch != w.epoch {
		return errBroken
	}
	answer := time.NewTimer(s.takes)
	defer answer.Stop()
	if s.hangs {
		answer.Reset(time.Hour)
	}
	select {
	case <-answer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s := w.manager.of(w.address); s.down || s.epoch != w.epoch {
		return errBroken
	}
	return nil
}

func (w *wire) ServerVersion() string { return "test 1" }

func (w *wire) Close() { w.manager.change(w.address, func(s *server) { s.open-- }) }

// connectTime is enough for a pool to connect to servers that answer.
const connectTime = 10 * time.Millisecond

// run runs a test with a pool of connections to a manager, in a synctest bubble with fake time.
func run(t *testing.T, m *manager, config Config[*wire], test func(t *testing.T, p *Pool[*wire])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config.Dial = m.dial
		p, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(connectTime) // the pool has connected to each server
		synctest.Wait()
		test(t, p)
		p.Close()
		synctest.Wait()
		for _, address := range config.Endpoints {
			if open := m.of(address).open; open != 0 {
				t.Errorf("%d connections to %s are open after the end, want none", open, address)
			}
		}
	})
}

func ask(p *Pool[*wire], kind Kind) error {
	return p.Do(context.Background(), kind, func(ctx context.Context, w *wire) error { return w.request(ctx) })
}

// askAtOnce makes n requests at the same time and returns their errors.
func askAtOnce(p *Pool[*wire], kind Kind, n int) []error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		all.Go(func() { errs[i] = ask(p, kind) })
	}
	all.Wait()
	return errs
}

func TestRequestsShareAFewConnections(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}, Max: 4}, func(t *testing.T, p *Pool[*wire]) {
		for _, err := range askAtOnce(p, Repeatable, 100) {
			if err != nil {
				t.Error(err)
			}
		}
		if a := m.of("a"); a.requests != 100 || a.most > 4 {
			t.Errorf("%d requests over %d connections at most, want 100 over 4", a.requests, a.most)
		}
	})
}

func TestAServerThatEndsLosesNoRepeatableRequest(t *testing.T) {
	m := newManager("a", "b")
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}}, func(t *testing.T, p *Pool[*wire]) {
		_ = askAtOnce(p, Repeatable, 50)
		m.change("a", func(s *server) { s.down = true })
		for range 20 {
			for _, err := range askAtOnce(p, Repeatable, 10) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if p.Status()[0].Usable {
			t.Error("the server that ended still gets requests")
		}
		m.change("a", func(s *server) { s.down, s.epoch = false, s.epoch+1 })
		<-time.After(tripTime + time.Second)
		before := m.of("a").requests
		for range 20 {
			_ = askAtOnce(p, Repeatable, 10)
		}
		if m.of("a").requests == before || !p.Status()[0].Usable {
			t.Error("the server is back and gets no requests")
		}
	})
}

func TestARestartBeforeTheFirstRequestLosesNoRequest(t *testing.T) {
	for name, kind := range map[string]Kind{"repeatable": Repeatable, "made once": Once} {
		t.Run(name, func(t *testing.T) {
			m := newManager("a")
			run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
				m.change("a", func(s *server) { s.epoch++ })
				<-time.After(2 * checkAfter)
				if err := ask(p, kind); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestARestartOfTheOnlyServerLosesNoRepeatableRequest(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		_ = askAtOnce(p, Repeatable, 8)
		m.change("a", func(s *server) { s.epoch++ })
		for _, err := range askAtOnce(p, Repeatable, 8) {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestARequestThatMayBeMadeOnceIsNotRepeated(t *testing.T) {
	m := newManager("a", "b")
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}}, func(t *testing.T, p *Pool[*wire]) {
		if err := ask(p, Once); err != nil {
			t.Fatal(err)
		}
		m.change("a", func(s *server) { s.epoch++ }) // within checkAfter: nothing has been pinged
		if err := ask(p, Once); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if a, b := m.of("a").requests, m.of("b").requests; a != 2 || b != 0 {
			t.Errorf("the servers got %d and %d requests, want 2 and 0", a, b)
		}
	})
}

func TestARequestThatMayBeMadeOnceGetsAConnectionThatAnswers(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		if err := ask(p, Once); err != nil {
			t.Fatal(err)
		}
		m.change("a", func(s *server) { s.epoch++ })
		<-time.After(2 * checkAfter)
		if err := ask(p, Once); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutTheMasterTheNextServerCreates(t *testing.T) {
	m := newManager("a", "b")
	m.change("a", func(s *server) { s.down = true })
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}}, func(t *testing.T, p *Pool[*wire]) {
		if err := ask(p, Once); err != nil {
			t.Error(err)
		}
	})
}

func TestAServerThatHangsIsLeftAlone(t *testing.T) {
	m := newManager("a", "b")
	m.change("a", func(s *server) { s.hangs = true })
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}}, func(t *testing.T, p *Pool[*wire]) {
		for range 40 {
			if err := ask(p, Repeatable); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.of("a").requests; got > tripAfter+1 {
			t.Errorf("a server that does not answer got %d requests, want at most %d", got, tripAfter+1)
		}
	})
}

// Most callers wait less than RequestTimeout, so that the server has not failed when they give up.
func TestAServerThatHangsIsLeftAloneAlsoIfItsCallersGiveUpFirst(t *testing.T) {
	for sentence, hang := range map[string]func(*server){
		"no request is answered":    func(s *server) { s.hangs = true },
		"no connection is answered": func(s *server) { s.silent = true; s.epoch++ },
	} {
		for _, roundRobin := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in turn %t", sentence, roundRobin), func(t *testing.T) {
				m := newManager("a", "b")
				m.change("b", func(s *server) { s.takes = 10 * time.Millisecond })
				run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}, RoundRobin: roundRobin}, func(t *testing.T, p *Pool[*wire]) {
					failed := func() (count int) {
						for range 40 {
							ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
							if err := p.Do(ctx, Repeatable, func(ctx context.Context, w *wire) error { return w.request(ctx) }); err != nil {
								count++
							}
							cancel()
						}
						return count
					}
					if count := failed(); count > 0 {
						t.Fatalf("%d requests failed before", count)
					}
					m.change("a", hang)
					if count := failed(); count > 3 {
						t.Errorf("%d of 40 requests failed, want at most 3", count)
					}
					m.change("a", func(s *server) { s.hangs, s.silent, s.requests = false, false, 0 })
					<-time.After(time.Minute) // until the pool has looked at the connections
					if count := failed(); count > 0 || m.of("a").requests == 0 {
						t.Errorf("afterwards, %d requests failed, and the server got %d", count, m.of("a").requests)
					}
				})
			})
		}
	}
}

// Otherwise each call would take the place of another one for as long as its caller waits.
func TestTheOnlyServerIsLeftAloneIfItAnswersNobody(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		try := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			return p.Do(ctx, Repeatable, func(ctx context.Context, w *wire) error { return w.request(ctx) })
		}
		m.change("a", func(s *server) { s.hangs = true })
		for range tripAfter {
			if err := try(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want DeadlineExceeded", err)
			}
		}
		if err := try(); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if a := p.Status()[0]; a.Usable || a.Reach != Unreachable || a.Failure != TimedOut || a.Requests != (Requests{}) {
			t.Errorf("found %+v, expected a server that gets no requests, because it timed out", a)
		}
		m.change("a", func(s *server) { s.hangs = false })
		<-time.After(time.Minute) // until the pool has looked at the connections
		if err := try(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestCallersWhoGiveUpAreNoFaultsOfAServerThatAnswersOthers(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		for range 3 * tripAfter {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_ = p.Do(ctx, Repeatable, func(ctx context.Context, _ *wire) error {
				if err := ask(p, Repeatable); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return ctx.Err()
			})
			cancel()
		}
		if !p.Status()[0].Usable {
			t.Error("the server gets no requests because callers gave up")
		}
	})
}

func TestAServerThatDoesNotConnectInTimeIsLeftAlone(t *testing.T) {
	m := newManager("a", "b")
	m.change("a", func(s *server) { s.silent = true })
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}, DialTimeout: time.Millisecond, Min: -1}, func(t *testing.T, p *Pool[*wire]) {
		for range 40 {
			if err := ask(p, Repeatable); err != nil {
				t.Fatal(err)
			}
		}
		if a := p.Status()[0]; a.Usable || a.Failure != TimedOut {
			t.Errorf("found %+v, expected a server that gets no requests, because it timed out", a)
		}
		m.change("b", func(s *server) { s.silent = true; s.epoch++ })
		if err := ask(p, Repeatable); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("found %v, expected ErrUnavailable", err)
		}
	})
}

func TestWithoutAnyServerTheErrorIsUnavailable(t *testing.T) {
	m := newManager("a", "b")
	for _, address := range []string{"a", "b"} {
		m.change(address, func(s *server) { s.down = true })
	}
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}}, func(t *testing.T, p *Pool[*wire]) {
		for range 2 * tripAfter {
			if err := ask(p, Repeatable); !errors.Is(err, keys.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
		}
		const want = "keys: the provider is not available: a, b did not answer lately"
		if err := ask(p, Repeatable); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestErrorsOfRequestsAreNoFaultsOfTheServer(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		for range 3 * tripAfter {
			err := p.Do(t.Context(), Repeatable, func(context.Context, *wire) error { return keys.ErrNotFound })
			if !errors.Is(err, keys.ErrNotFound) {
				t.Fatalf("got %v, want ErrNotFound", err)
			}
		}
		if a := m.of("a"); !p.Status()[0].Usable || a.dialed != 1 {
			t.Errorf("usable is %t after %d connections, want true after 1", p.Status()[0].Usable, a.dialed)
		}
	})
}

func TestCallersThatGiveUpAreNoFaultsOfTheServer(t *testing.T) {
	m := newManager("a")
	m.change("a", func(s *server) { s.takes = time.Second })
	run(t, m, Config[*wire]{Endpoints: []string{"a"}}, func(t *testing.T, p *Pool[*wire]) {
		for range 3 * tripAfter {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			err := p.Do(ctx, Repeatable, func(ctx context.Context, w *wire) error { return w.request(ctx) })
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want DeadlineExceeded", err)
			}
		}
		if !p.Status()[0].Usable {
			t.Error("the server gets no requests because callers gave up")
		}
	})
}

func TestTheSlowerServerGetsFewerRequests(t *testing.T) {
	m := newManager("a", "b")
	m.change("a", func(s *server) { s.takes = 100 * time.Millisecond })
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}, Max: 32}, func(t *testing.T, p *Pool[*wire]) {
		for range 50 {
			_ = askAtOnce(p, Repeatable, 16)
		}
		if a, b := m.of("a").requests, m.of("b").requests; a*3 > b {
			t.Errorf("a server that is a hundred times slower got %d requests, the other %d", a, b)
		}
	})
}

func TestRoundRobinTreatsServersAlike(t *testing.T) {
	m := newManager("a", "b", "c")
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b", "c"}, RoundRobin: true}, func(t *testing.T, p *Pool[*wire]) {
		for range 30 {
			if err := ask(p, Repeatable); err != nil {
				t.Fatal(err)
			}
		}
		for _, address := range []string{"a", "b", "c"} {
			if got := m.of(address).requests; got != 10 {
				t.Errorf("%s got %d requests, want 10", address, got)
			}
		}
	})
}

func TestConnectionsThatNobodyUsesAreClosedButForAFew(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}, Max: 8, Min: 2}, func(t *testing.T, p *Pool[*wire]) {
		_ = askAtOnce(p, Repeatable, 20)
		if got := m.of("a").open; got != 8 {
			t.Errorf("%d connections are open under load, want 8", got)
		}
		<-time.After(3 * time.Minute)
		if a := m.of("a"); a.open != 2 || a.pings == 0 {
			t.Errorf("%d connections are open after 3 minutes, with %d pings, want 2 with some", a.open, a.pings)
		}
	})
}

func TestAConnectionHasALifetime(t *testing.T) {
	m := newManager("a")
	run(t, m, Config[*wire]{Endpoints: []string{"a"}, Lifetime: 10 * time.Minute}, func(t *testing.T, p *Pool[*wire]) {
		for range 60 {
			if err := ask(p, Repeatable); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		if got := m.of("a").dialed; got < 5 || got > 8 {
			t.Errorf("%d connections in an hour with a lifetime of 10 minutes, want about 6", got)
		}
	})
}

func TestTheStatusSaysWhichServersAreUsable(t *testing.T) {
	m := newManager("a", "b")
	run(t, m, Config[*wire]{Endpoints: []string{"a", "b"}}, func(t *testing.T, p *Pool[*wire]) {
		usable := func(want string) {
			t.Helper()
			var got []string
			for _, s := range p.Status() {
				got = append(got, fmt.Sprint(s.Endpoint, " ", s.Usable))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("the status says %s, want %s", got, want)
			}
		}
		usable("[a true b true]")
		m.change("b", func(s *server) { s.down = true })
		for range 50 {
			_ = ask(p, Repeatable)
		}
		usable("[a true b false]")
		m.change("b", func(s *server) { s.down = false })
		<-time.After(tripTime + time.Second)
		for range 50 {
			_ = ask(p, Repeatable)
		}
		usable("[a true b true]")
	})
}

func TestAPoolNeedsAnEndpoint(t *testing.T) {
	if _, err := New(Config[*wire]{}); err == nil || err.Error() != "pool: found no endpoint, expected at least one" {
		t.Errorf("got %v", err)
	}
}
