// SPDX-License-Identifier: Apache-2.0

//go:build redis

package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/session/redis"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = time.Minute

const id = "S-0123456789abcdef0123456789abcdef"

var (
	key = bytes.Repeat([]byte{0x4b}, 32)
	// now is the time of the requests. Any other time would do.
	now = time.UnixMilli(1795435200000)
)

// nameOf is the name of a session in Redis.
func nameOf(id string) string { return "crypto-broker:{" + id[len(id)-1:] + "}:" + id }

func record(id string) *session.Record {
	return &session.Record{
		ID: id, Protocol: algorithm.SessionV2, ClientID: "shop-1", Began: now, Expires: now.Add(time.Hour), Window: time.Minute,
		Owner: session.Owner{Caller: callers.Caller{Container: "web", UID: 1000, GID: 2000, Known: true}, Socket: "web", Profile: "P"},
	}
}

func acceptance(nonce byte) session.Acceptance {
	return session.Acceptance{Nonce: [16]byte{nonce}, Timestamp: now.UnixMilli(), Floor: now.Add(-time.Minute).UnixMilli(), MostMessages: 100}
}

// place is a directory of settings, and another one of keys.
type place struct {
	t              testing.TB
	settings, keys string
	mu             sync.Mutex
	observed       []string
}

// newPlace returns a place whose settings have more lines.
func newPlace(t testing.TB, lines ...string) *place {
	t.Helper()
	p := &place{t: t, settings: t.TempDir(), keys: t.TempDir()}
	p.write(p.settings, redis.FileName, strings.Join(lines, "\n"))
	p.write(p.keys, "sessions.bin", strings.Repeat("w", 32))
	return p
}

func (p *place) write(dir, name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// open returns a store of a broker. It ends with the test.
func (p *place) open() *redis.Store {
	p.t.Helper()
	settings, warnings, err := redis.Read(p.settings)
	if err != nil || len(warnings) > 0 {
		p.t.Fatal(err, warnings)
	}
	directory, err := keys.Watch(p.t.Context(), p.keys)
	if err != nil {
		p.t.Fatal(err)
	}
	store, err := redis.Open(redis.Options{
		Settings: settings, Keys: directory, Unlocked: func(error) {},
		Observe: func(err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err == nil {
				err = errors.New("serves")
			}
			p.observed = append(p.observed, err.Error())
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(store.Close)
	return store
}

// hasObserved reports whether the observer was told something with a text in it.
func (p *place) hasObserved(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(strings.Join(p.observed, "\n"), text)
}

// onServer returns a place for one server. Timeouts are for tests of servers that are away.
func onServer(t testing.TB, server *redisserver.Server) *place {
	t.Helper()
	return newPlace(t, "Addresses: ["+server.Address+"]", "WithoutTLS: true", "WrappingKey: sessions", "Timeout: 10s")
}

func want(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// eventually tries until there is no error.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	eventuallyWithin(t, waitLimit, what, try)
}

func eventuallyWithin(t testing.TB, limit time.Duration, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; <-time.After(10 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// begun returns two brokers that have a session.
func begun(t testing.TB, p *place) (a, b *redis.Store) {
	t.Helper()
	a, b = p.open(), p.open()
	want(t, "begin", a.Add(t.Context(), record(id), key), nil)
	found(t, b, id)
	return a, b
}

func found(t testing.TB, s *redis.Store, id string) {
	t.Helper()
	got := make([]byte, len(key))
	r, err := s.Find(t.Context(), id, got)
	if err != nil || r == nil || !bytes.Equal(got, key) || *r != *record(id) {
		t.Errorf("found %+v, %v", r, err)
	}
}

func missing(t testing.TB, s *redis.Store) {
	t.Helper()
	got := make([]byte, len(key))
	if r, err := s.Find(t.Context(), id, got); err != nil || r != nil || !bytes.Equal(got, make([]byte, len(key))) {
		t.Errorf("found %+v, %v, and a key", r, err)
	}
}

func TestASessionThatEndsAtOneBrokerEndsAtTheOther(t *testing.T) {
	a, b := begun(t, onServer(t, redisserver.Start(t)))
	want(t, "a request", b.Accept(t.Context(), id, acceptance(1)), nil)
	want(t, "the same at the other broker", a.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
	want(t, "a reply", b.CountReply(t.Context(), id, 2), nil)
	want(t, "a reply of the other broker", a.CountReply(t.Context(), id, 2), nil)
	want(t, "a reply too many", b.CountReply(t.Context(), id, 2), session.ErrEnded)
	want(t, "the end", a.End(t.Context(), id, record(id).Owner), nil)
	want(t, "a request after it", b.Accept(t.Context(), id, acceptance(2)), session.ErrRefused)
	want(t, "a reply after it", b.CountReply(t.Context(), id, 100), session.ErrEnded)
	missing(t, a)
	missing(t, b)
}

func TestRedisHasNoKeyThatItCanRead(t *testing.T) {
	for sentence, test := range map[string]struct {
		setting string
		clear   bool
	}{"wrapped": {"WrappingKey: sessions", false}, "in clear": {"KeysInClear: true", true}} {
		t.Run(sentence, func(t *testing.T) {
			server := redisserver.Start(t)
			a := newPlace(t, "Addresses: ["+server.Address+"]", "WithoutTLS: true", test.setting, "Timeout: 10s").open()
			want(t, "begin", a.Add(t.Context(), record(id), key), nil)
			stored := server.Ask(t, "HGETALL", nameOf(id))
			if got := strings.Contains(stored, string(key)); got != test.clear || !strings.Contains(stored, "shop-1") {
				t.Errorf("the key is there: %t\n%q", got, stored)
			}
		})
	}
}

func TestWhoeverChangesARecordMakesNoSession(t *testing.T) {
	const other = "S-00000000000000000000000000000000"
	name := nameOf(id)
	for sentence, change := range map[string]func(t *testing.T, s *redisserver.Server, p *place){
		"another owner": func(t *testing.T, s *redisserver.Server, _ *place) {
			s.Ask(t, "HSET", name, "record", strings.Replace(s.Ask(t, "HGET", name, "record"), `"uid":1000`, `"uid":0`, 1))
		},
		"a later end": func(t *testing.T, s *redisserver.Server, _ *place) {
			s.Ask(t, "HSET", name, "record", strings.Replace(s.Ask(t, "HGET", name, "record"), `"expires":17954`, `"expires":27954`, 1))
		},
		"another session": func(t *testing.T, s *redisserver.Server, p *place) {
			want(t, "begin", p.open().Add(t.Context(), record(other), key), nil)
			s.Ask(t, "COPY", nameOf(other), name, "REPLACE")
		},
		"no record": func(t *testing.T, s *redisserver.Server, _ *place) { s.Ask(t, "HSET", name, "record", "[") },
		"another wrapping key": func(_ *testing.T, _ *redisserver.Server, p *place) {
			p.write(p.keys, "sessions.bin", strings.Repeat("x", 32))
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := redisserver.Start(t)
			p := onServer(t, server)
			want(t, "begin", p.open().Add(t.Context(), record(id), key), nil)
			change(t, server, p)
			missing(t, p.open())
		})
	}
}

func TestASessionEndsWhenItsNoncesAreRemoved(t *testing.T) {
	server := redisserver.Start(t)
	a, b := begun(t, onServer(t, server))
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	server.Ask(t, "DEL", nameOf(id)+":nonces")
	want(t, "the same again", b.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
	want(t, "another one", b.Accept(t.Context(), id, acceptance(2)), session.ErrRefused)
	if got := server.Ask(t, "EXISTS", nameOf(id), nameOf(id)+":nonces"); got != "0" {
		t.Errorf("%s keys are left", got)
	}
}

// Redis may confirm a change before the change is on its disk.
func TestASessionEndsWhenRedisRestartsAlsoWithADisk(t *testing.T) {
	server := redisserver.New(t)
	server.RunAs(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := begun(t, onServer(t, server))
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	server.Kill(t)
	server.Again(t)
	eventually(t, "the session is still there", func() error {
		if got, err := server.TryToAsk("EXISTS", nameOf(id)); err != nil || got != "1" {
			return errors.New(got)
		}
		return nil
	})
	eventually(t, "a request", func() error {
		if err := b.Accept(t.Context(), id, acceptance(2)); !errors.Is(err, session.ErrRefused) {
			return errors.New("it is not refused")
		}
		return nil
	})
}

func TestRedisThatIsAwayIsUsedAgainWhenItIsBack(t *testing.T) {
	for sentence, test := range map[string]struct {
		leave, back func(*redisserver.Server, testing.TB)
	}{
		"killed": {(*redisserver.Server).Kill, (*redisserver.Server).Again},
		"silent": {(*redisserver.Server).Pause, (*redisserver.Server).Continue},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := redisserver.Start(t)
			p := newPlace(t, "Addresses: ["+server.Address+"]", "WithoutTLS: true", "WrappingKey: sessions", "Timeout: 200ms")
			a := p.open()
			eventually(t, "begin", func() error { return a.Add(t.Context(), record(id), key) })
			test.leave(server, t)
			if !a.Serves() {
				t.Error("Redis does not serve before it is away")
			}
			bounded, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			want(t, "a request", a.Accept(bounded, id, acceptance(1)), session.ErrUnavailable)
			want(t, "a reply", a.CountReply(bounded, id, 100), session.ErrUnavailable)
			want(t, "a forged request", a.Check(bounded, id), session.ErrUnavailable)
			want(t, "the end", a.End(bounded, id, record(id).Owner), session.ErrUnavailable)
			want(t, "begin", a.Add(bounded, record(id), key), session.ErrUnavailable)
			if _, err := a.Find(bounded, "S-00000000000000000000000000000000", make([]byte, 32)); !errors.Is(err, session.ErrUnavailable) {
				t.Errorf("another session: %v", err)
			}
			if a.Serves() {
				t.Error("Redis serves although it is away")
			}
			test.back(server, t)
			eventually(t, "begin again", func() error { return a.Add(t.Context(), record(id), key) })
			if !a.Serves() || !p.hasObserved("serves") {
				t.Errorf("the observer was told %q", p.observed)
			}
		})
	}
}

// The library lets 256 commands of a connection wait for replies, and one more without a bound.
func TestNoCallWaitsLongerThanItsTimeoutForASilentRedis(t *testing.T) {
	server := redisserver.Start(t)
	a := newPlace(t, "Addresses: ["+server.Address+"]", "WithoutTLS: true", "WrappingKey: sessions", "Timeout: 200ms").open()
	eventually(t, "begin", func() error { return a.Add(t.Context(), record(id), key) })
	connections := func() string {
		_, count, _ := strings.Cut(server.Ask(t, "INFO", "stats"), "total_connections_received:")
		return strings.Fields(count)[0]
	}
	before := connections()
	server.Pause(t)
	var calls sync.WaitGroup
	for i := range 600 {
		calls.Go(func() {
			if _, err := a.Find(t.Context(), fmt.Sprintf("S-%032x", i), make([]byte, 32)); !errors.Is(err, session.ErrUnavailable) {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	calls.Wait()
	server.Continue(t)
	eventually(t, "a request", func() error { return a.Accept(t.Context(), id, acceptance(1)) })
	// Each question of the test is a connection of its own.
	if after := connections(); after != add(t, before, 1) {
		t.Errorf("Redis had %s connections before and %s afterwards: the calls waited until the connection of the broker was given up", before, after)
	}
}

func add(t testing.TB, to string, n int) string {
	t.Helper()
	number, err := strconv.Atoi(to)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(number + n)
}

func TestABrokerStartsWithoutRedisAndUsesItLater(t *testing.T) {
	server := redisserver.New(t)
	a := onServer(t, server).open()
	want(t, "begin", a.Add(t.Context(), record(id), key), session.ErrUnavailable)
	server.Run(t)
	eventually(t, "begin again", func() error { return a.Add(t.Context(), record(id), key) })
}

func TestRedisWithoutMemoryRefuses(t *testing.T) {
	server := redisserver.Start(t)
	p := onServer(t, server)
	a, _ := begun(t, p)
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	server.Ask(t, "CONFIG", "SET", "maxmemory", "1")
	want(t, "begin", a.Add(t.Context(), record("S-00000000000000000000000000000000"), key), session.ErrNoMemory)
	want(t, "another request", a.Accept(t.Context(), id, acceptance(2)), session.ErrNoMemory)
	want(t, "the same request", a.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
	want(t, "a reply", a.CountReply(t.Context(), id, 100), session.ErrNoMemory)
	found(t, a, id)
	if a.Serves() {
		t.Error("Redis serves without memory")
	}
	server.Ask(t, "CONFIG", "SET", "maxmemory", "0")
	want(t, "another request with memory", a.Accept(t.Context(), id, acceptance(2)), nil)
	if !a.Serves() {
		t.Error("Redis does not serve with memory")
	}
}

func TestRedisThatEndsSessionsByItselfHasNone(t *testing.T) {
	server := redisserver.Start(t, "--maxmemory-policy", "volatile-lru")
	p := onServer(t, server)
	a := p.open()
	want(t, "begin", a.Add(t.Context(), record(id), key), session.ErrUnavailable)
	if !p.hasObserved("found maxmemory-policy volatile-lru, expected noeviction") || a.Serves() {
		t.Errorf("the observer was told %q", p.observed)
	}
	server.Ask(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	want(t, "begin with the right policy", a.Add(t.Context(), record(id), key), nil)
}

func TestTheScriptsAreLoadedAgain(t *testing.T) {
	server := redisserver.Start(t)
	a, _ := begun(t, onServer(t, server))
	server.Ask(t, "SCRIPT", "FLUSH")
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
}

func TestASessionRemembersSoManyNonces(t *testing.T) {
	server := redisserver.Start(t)
	a, _ := begun(t, onServer(t, server))
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	// From here on the session has 65,536 nonces.
	server.Ask(t, "EVAL", "for i = 1, 65535 do redis.call('ZADD', KEYS[2], ARGV[1], i) end redis.call('HSET', KEYS[1], 'nonces', 65536)", "2",
		nameOf(id), nameOf(id)+":nonces", "1795435200000")
	want(t, "one more", a.Accept(t.Context(), id, acceptance(2)), session.ErrBusy)
	later := acceptance(2)
	later.Timestamp, later.Floor = later.Timestamp+1, now.UnixMilli()+1
	want(t, "when they are forgotten", a.Accept(t.Context(), id, later), nil)
	want(t, "a time that is forgotten", a.Accept(t.Context(), id, acceptance(3)), session.ErrRefused)
	if got := server.Ask(t, "ZCARD", nameOf(id)+":nonces"); got != "1" {
		t.Errorf("%s nonces are left", got)
	}
	if got := server.Ask(t, "PTTL", nameOf(id)+":nonces"); strings.HasPrefix(got, "-") {
		t.Error("the nonces do not expire")
	}
}
