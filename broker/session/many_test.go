// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// fill adds sessions without the agreement on their keys, and returns them.
func fill(t testing.TB, s *Store, count int) []*session {
	t.Helper()
	all := make([]*session, count)
	for i := range all {
		all[i] = &session{
			id: newID(), owner: theOwner, protocol: algorithm.SessionV1, began: s.now(), expires: s.now().Add(5 * time.Minute), window: 5 * time.Minute,
		}
		if err := s.add(all[i], make([]byte, keySize)); err != nil {
			t.Fatalf("session %d: %v", i+1, err)
		}
	}
	return all
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second collection frees what the first one found unused
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestAsManySessionsAsThereMayBeTakeLittleMemoryAndGiveItBack(t *testing.T) {
	s, now := newStore(t)
	p := policy(t, "")
	before := heap()
	for _, each := range fill(t, s, MaxSessions) {
		// A request with the present time and one with a future time are in two sets. Two nonces take the most memory this way.
		for _, at := range []time.Time{noon, noon.Add(299 * time.Second)} {
			if err := each.accept(&message{nonceID: idOfNonce(newID()), timestamp: at.UnixMilli()}, p, noon, int64(s.mostNonces)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.add(&session{id: newID(), owner: theOwner}, make([]byte, keySize)); !errors.Is(err, ErrFull) {
		t.Errorf("one session more: %v", err)
	}
	full := heap() - before
	if most := int64(MaxSessions * MemoryOfSession); full > most {
		t.Errorf("the sessions take %d bytes, want at most %d", full, most)
	}
	now.add(10 * time.Minute)
	s.sweep() // ends them
	s.sweep() // gives the memory back, because no session has begun since
	if left := heap() - before; left > full/10 || len(s.memory) > 0 || s.sweeper != nil {
		t.Errorf("of %d bytes, %d are left, with %d pieces of memory for keys, and the timer %v", full, left, len(s.memory), s.sweeper)
	}
	connect(t, s, now, p, "")
	runtime.KeepAlive(s)
}

func TestTheLimitsFollowTheMemoryForRequests(t *testing.T) {
	for sentence, test := range map[string]struct {
		memory           int64
		sockets          int
		sessions, nonces int
	}{
		"a broker without a limit":           {128 << 20, 1, 131072, 1048576},
		"a broker with more than it can use": {1 << 40, 1, 131072, 1048576},
		"the default of a pod":               {32 << 20, 1, 32768, 262144},
		"two sockets":                        {32 << 20, 2, 16384, 131072},
		"the least memory":                   {4 << 20, 1, 4096, 32768},
		"more sockets than sessions":         {2 << 10, 3, 1, 5},
		"no memory at all":                   {1, 1, 1, 4},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, _ := newStore(t)
			s.Limit(test.memory, test.sockets)
			if got := s.Stats().MostOfSocket; got != test.sessions {
				t.Errorf("%d sessions, want %d", got, test.sessions)
			}
			if got := s.nonceLimit(); got != int64(test.nonces) {
				t.Errorf("%d nonces, want %d", got, test.nonces)
			}
		})
	}
}

func TestEachSessionIsVisitedWhileOthersEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same numbers in each run
	for _, count := range []int{0, 1, 2, 3*stepOfVisit + 1} {
		s, _ := newStore(t)
		all := fill(t, s, count)
		visited, ended := map[*session]bool{}, map[*session]bool{}
		s.visit(func(each *session) {
			visited[each] = true
			switch random.IntN(3) {
			case 0:
				s.endLocked(each)
				ended[each] = true
			case 1:
				other := all[random.IntN(len(all))]
				s.endLocked(other)
				ended[other] = true
			}
		})
		for i, each := range all {
			if !visited[each] && !ended[each] {
				t.Errorf("session %d of %d was not visited", i+1, count)
			}
			if s.sessions[each.id] != nil == ended[each] {
				t.Errorf("session %d of %d: ended %t, in the store %t", i+1, count, ended[each], s.sessions[each.id] != nil)
			}
		}
		if len(s.all) != len(s.sessions) {
			t.Errorf("of %d sessions there are %d and %d", count, len(s.all), len(s.sessions))
		}
	}
}

func TestCallsGoOnWhileSessionsAreVisited(t *testing.T) {
	s, _ := newStore(t)
	fill(t, s, 20*stepOfVisit)
	visiting := false // guarded by the mutex of the store
	var seen, over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !seen.Load() && !over.Load() {
			s.mu.Lock()
			seen.Store(visiting)
			s.mu.Unlock()
		}
	}()
	for deadline := time.Now().Add(time.Minute); !seen.Load() && time.Now().Before(deadline); {
		left := 20 * stepOfVisit
		s.visit(func(*session) {
			left--
			visiting = left > 0
		})
	}
	over.Store(true)
	<-done
	if !seen.Load() {
		t.Error("a call had to wait until all sessions were visited")
	}
}

func BenchmarkSweep(b *testing.B) {
	s, _ := newStore(b)
	p := policy(b, "")
	for _, each := range fill(b, s, MaxSessions) {
		if err := each.accept(&message{nonceID: idOfNonce(newID()), timestamp: noon.UnixMilli()}, p, noon, int64(s.mostNonces)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s.sweep()
	}
}

func BenchmarkAddAndEnd(b *testing.B) {
	s, _ := newStore(b)
	fill(b, s, MaxSessions-1)
	for b.Loop() {
		fill(b, s, 1)
		s.end(theOwner, s.all[0].id)
	}
}
