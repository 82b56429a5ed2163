// SPDX-License-Identifier: Apache-2.0

// Package shares divides a fixed amount, for example of memory, among clients that do
// not trust each other.
//
// A client may hold as much as is still free. So a single client gets half, two clients get a
// third each, and k clients leave one part in k+1 for the next client. Some of the amount is
// always free for a new client, and the number of clients need not be known.
//
// A client may name parts, for example namespaces. Its parts share half of the total by
// the same rule.
package shares

import (
	"context"
	"sync"
)

// Holder is a client, or a part of a client, that holds an amount.
type Holder struct {
	// Client shares with other clients.
	Client string
	// Part is the part of the client, empty for the client itself.
	Part string
}

// Shares divide a total. The zero value has nothing to give; use New. Several goroutines
// may use it at once.
type Shares struct {
	total int64

	mu   sync.Mutex
	free int64
	// held has the amount of each client, and of each part of a client. A holder without an
	// amount has no entry.
	held map[Holder]int64
	// waiting has the waiters in the order of their calls of Acquire.
	waiting []*waiter
}

// waiter waits for an amount. granted is closed once it has the amount.
type waiter struct {
	holder  Holder
	amount  int64
	granted chan struct{}
}

// New returns shares of a total.
func New(total int64) *Shares {
	return &Shares{total: total, free: total, held: map[Holder]int64{}}
}

// Most returns the amount that a single holder may have: half of the total, or a quarter for a
// part of a client. No holder can acquire more at once.
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
			s.serve() // the waiting requests after it may be smaller
			return ctx.Err()
		}
	}
	return nil // granted in the same moment
}

// Release gives back an amount that the holder has, and serves holders that wait for it.
func (s *Shares) Release(h Holder, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(h, -amount)
	s.serve()
}

// fits reports whether a holder may have an additional amount now.
func (s *Shares) fits(h Holder, amount int64) bool {
	client := s.held[Holder{Client: h.Client}]
	if client+amount > s.free-amount {
		return false
	}
	return h.Part == "" || s.held[h]+amount <= s.total/2-client-amount
}

// waits reports whether the holder already waits for another amount. Requests of a holder are
// served in their order.
func (s *Shares) waits(h Holder) bool {
	for _, w := range s.waiting {
		if w.holder == h {
			return true
		}
	}
	return false
}

// take moves an amount from the free part to the holder, or back if it is negative.
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

// serve grants the amounts that fit now, in the order of the waiters. A waiter does not overtake
// another waiter of the same holder.
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
