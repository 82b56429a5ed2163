// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// greedy takes parts one after the other until there is no more, and returns how many it got.
func greedy(s *Shares, h Holder) (taken int64) {
	for s.Try(h, 1) {
		taken++
	}
	return taken
}

func TestOneClientAloneGetsHalf(t *testing.T) {
	if taken := greedy(New(1000), Holder{Client: "a"}); taken != 500 {
		t.Errorf("it got %d of 1000, expected 500", taken)
	}
}

func TestANewClientFindsAsMuchAsEachOfTheGreedyOnes(t *testing.T) {
	for _, clients := range []int{1, 2, 20, 200} {
		t.Run(fmt.Sprintf("%d greedy ones", clients), func(t *testing.T) {
			s := New(1024)
			for range 1024 { // in turns, until nobody gets more
				for i := range clients {
					s.Try(Holder{Client: fmt.Sprint("greedy ", i)}, 1)
				}
			}
			if want, found := int64(1024/(clients+1)), s.free; found < want {
				t.Errorf("%d are free, expected at least %d", found, want)
			}
			if !s.Try(Holder{Client: "new"}, 1) {
				t.Error("a new client got nothing")
			}
		})
	}
}

func TestOnePartOfAClientLeavesRoomForTheOthers(t *testing.T) {
	s := New(1000)
	if taken := greedy(s, Holder{"a", "noisy"}); taken != 250 {
		t.Errorf("the first part got %d of 1000, expected 250", taken)
	}
	if taken := greedy(s, Holder{"a", "quiet"}); taken != 125 {
		t.Errorf("the second part got %d, expected half of the rest of the client's", taken)
	}
	if taken := greedy(s, Holder{Client: "b"}); taken != 312 {
		t.Errorf("another client got %d, expected half of what is free", taken)
	}
}

func TestWhatIsGivenBackGoesToWhoWaits(t *testing.T) {
	s := New(10)
	noisy, quiet := Holder{"a", "noisy"}, Holder{"a", "quiet"}
	taken := greedy(s, noisy)
	passed := make(chan string, 3)
	var waiting sync.WaitGroup
	acquire := func(name string, h Holder, amount int64) {
		waiting.Go(func() {
			if err := s.Acquire(t.Context(), h, amount); err != nil {
				t.Error(err)
			}
			passed <- name
			s.Release(h, amount)
		})
	}
	acquire("noisy", noisy, 2)
	until(t, "the noisy one waits", func() bool { return waitingOf(s) == 1 })
	acquire("noisy again", noisy, 1)
	until(t, "it waits behind itself", func() bool { return waitingOf(s) == 2 })
	acquire("quiet", quiet, 1) // finds room, although others came first
	if first := <-passed; first != "quiet" {
		t.Errorf("%s went on first, expected the quiet one", first)
	}
	s.Release(noisy, taken)
	waiting.Wait()
	if s.free != 10 || len(s.held) != 0 {
		t.Errorf("%d are free, held are %v", s.free, s.held)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("it did not happen that %s: %v", what, err)
	}
}

func waitingOf(s *Shares) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func TestWhoGivesUpHoldsNothing(t *testing.T) {
	s := New(2)
	if !s.Try(Holder{Client: "a"}, 1) {
		t.Fatal("there is no room at the start")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Acquire(ctx, Holder{Client: "a"}, 1); err == nil {
		t.Error("it waited for nothing and got it")
	}
	s.Release(Holder{Client: "a"}, 1)
	if s.free != 2 || len(s.waiting) != 0 {
		t.Errorf("%d are free and %d wait, expected 2 and nobody", s.free, len(s.waiting))
	}
}

// At any time the held part and the free part add up to the total.
func TestNothingIsLostAmongMany(t *testing.T) {
	s := New(100)
	var running sync.WaitGroup
	for i := range 50 {
		running.Go(func() {
			random := rand.New(rand.NewSource(int64(i)))
			h := Holder{Client: fmt.Sprint(i % 7), Part: fmt.Sprint(i % 3)}
			for range 200 {
				amount := int64(1 + random.Intn(10))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Intn(1000))*time.Microsecond)
				if s.Acquire(ctx, h, amount) == nil {
					s.Release(h, amount)
				}
				cancel()
			}
		})
	}
	running.Wait()
	if s.free != 100 || len(s.held) != 0 || len(s.waiting) != 0 {
		t.Errorf("%d are free, held are %v, %d wait", s.free, s.held, len(s.waiting))
	}
}
