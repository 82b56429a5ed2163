// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

// reclaimTime is how long gRPC may have a reply before its slot is reclaimed. Unless a write takes
// longer, gRPC has processed each reply within this time.
const reclaimTime = time.Second

// endReplies ends those slots whose replies gRPC has, and for which selected reports true.
func (c *Conn) endReplies(selected func(*Slot) bool) {
	var ended []*Slot
	c.mu.Lock()
	for p := c.first; p != nil; {
		next := p.next
		if p.replied && selected(p) {
			c.remove(p)
			ended = append(ended, p)
		}
		p = next
	}
	c.mu.Unlock()
	for _, p := range ended {
		p.release()
	}
}

// reclaim ends the slots of replies that gRPC has dropped. gRPC neither writes nor frees a reply
// that it gets after it has cleaned up the stream of the call, for example because of a deadline
// (loopyWriter.preprocessData of version 1.85). Without reclaim, such a slot would stay until the
// connection is closed. reclaim skips a connection whose client does not read, because gRPC may
// still hold its replies.
func (c *Conn) reclaim(now time.Time) {
	if c.writing.Load() != 0 {
		return
	}
	c.endReplies(func(p *Slot) bool {
		if now.Sub(p.since) < reclaimTime {
			return false
		}
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
}

// reclaim ends the slots of replies that gRPC has dropped, on all connections. It does so at most
// once in reclaimTime, however many calls wait for memory.
func (c *Caller) reclaim(now time.Time) {
	last := c.reclaimedAt.Load()
	if clock.Nanos(now)-last < int64(reclaimTime) || !c.reclaimedAt.CompareAndSwap(last, clock.Nanos(now)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.reclaim(now)
	}
}

// reclaimMeanwhile calls reclaim at intervals, until the returned function is called.
func (c *Caller) reclaimMeanwhile() (stop func()) {
	c.reclaim(time.Now())
	var again *time.Timer
	again = time.AfterFunc(time.Hour, func() {
		c.reclaim(time.Now())
		again.Reset(reclaimTime)
	})
	again.Reset(reclaimTime) // now that its function may read again
	return func() { again.Stop() }
}
