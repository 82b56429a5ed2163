// SPDX-License-Identifier: Apache-2.0

// Package shares divides what there is a fixed amount of, such as memory, among
// clients that do not trust each other.
//
// A client may hold as much as is still free. So one alone gets half, two get a
// third each, and k of them leave one part in k+1 for whoever comes next: a client
// never finds everything taken, however much others want, and nobody has to know
// beforehand how many clients there are.
//
// What a client has is divided in the same way among its parts, if it names them:
// the half that a client has alone.
package shares

import (
	"context"
	"sync"
)

// Holder is who holds something.
type Holder struct {
	// Client is who shares with other clients.
	Client string
	// Part is for whom the client acts, empty if it does so for itself.
	Part string
}

// Shares are what is divided. The zero value has nothing to give; use New. It may be
// used by several goroutines at once.
type Shares struct {
	total int64

	mu   sync.Mutex
	free int64
	// held is by client, and by holders that have a part. What is held by nobody has
	// no entry.
	held map[Holder]int64
	// waiting are in the order in which they came.
	waiting []*waiter
}

// waiter waits for an amount. granted is closed once it has it.
type waiter struct {
	holder  Holder
	amount  int64
	granted chan struct{}
}

// New divides a total.
func New(total int64) *Shares {
	return &Shares{total: total, free: total, held: map[Holder]int64{}}
}

// Most is what a holder may have if there is no other: half of the total, or a
// quarter for a part of a client. Nobody can acquire more at once.
func (s *Shares) Most(h Holder) int64 {
	if h.Part != "" {
		return s.total / 4
	}
	return s.total / 2
}

// Try takes an amount if the holder may have it now, and reports whether it did.
func (s *Shares) Try(h Holder, amount int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fits(h, amount) {
		return false
	}
	s.take(h, amount)
	return true
}

// Acquire takes an amount as soon as the holder may have it. It returns the
// context's error if that ends before.
func (s *Shares) Acquire(ctx context.Context, h Holder, amount int64) error {
	s.mu.Lock()
	if s.fits(h, amount) && !s.waits(h) {
		s.take(h, amount)
		s.mu.Unlock()
		return nil
	}
	w := &waiter{holder: h, amount: amount, granted: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()

	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.waiting {
		if s.waiting[i] == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.serve() // those behind it may be smaller
			return ctx.Err()
		}
	}
	return nil // granted in the same moment
}

// Release gives an amount back that the holder has.
func (s *Shares) Release(h Holder, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(h, -amount)
	s.serve()
}

// fits reports whether a holder may have an amount more now.
func (s *Shares) fits(h Holder, amount int64) bool {
	client := s.held[Holder{Client: h.Client}]
	if client+amount > s.free-amount {
		return false
	}
	return h.Part == "" || s.held[h]+amount <= s.total/2-client-amount
}

// waits reports whether the holder is waiting for something else already, behind
// which it has to stay.
func (s *Shares) waits(h Holder) bool {
	for _, w := range s.waiting {
		if w.holder == h {
			return true
		}
	}
	return false
}

// take moves an amount from what is free to the holder, or back if it is negative.
func (s *Shares) take(h Holder, amount int64) {
	s.free -= amount
	holders := []Holder{{Client: h.Client}, h}
	if h.Part == "" {
		holders = holders[:1]
	}
	for _, holder := range holders {
		if s.held[holder] += amount; s.held[holder] == 0 {
			delete(s.held, holder)
		}
	}
}

// serve lets those go on that may, the first of each holder before the others.
func (s *Shares) serve() {
	if len(s.waiting) == 0 {
		return
	}
	kept := s.waiting[:0]
	behind := map[Holder]bool{}
	for _, w := range s.waiting {
		if behind[w.holder] || !s.fits(w.holder, w.amount) {
			behind[w.holder] = true
			kept = append(kept, w)
			continue
		}
		s.take(w.holder, w.amount)
		close(w.granted)
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}
