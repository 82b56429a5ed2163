// SPDX-License-Identifier: Apache-2.0

package flow

import "time"

// reclaimTime is the age at which the slot of a reply is reclaimed, from when gRPC got the reply.
// If no write takes as long, gRPC has processed each reply within this time.
const reclaimTime = time.Second

// endReplies ends the slots of replies in gRPC that end selects.
func (c *Conn) endReplies(end func(*Slot) bool) {
	var ended []*Slot
	c.mu.Lock()
	for p := c.first; p != nil; {
		next := p.next
		if p.replied && end(p) {
			c.remove(p)
			ended = append(ended, p)
		}
		p = next
	}
	c.mu.Unlock()
	for _, p := range ended {
		p.give()
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
	if now.UnixNano()-last < int64(reclaimTime) || !c.reclaimedAt.CompareAndSwap(last, now.UnixNano()) {
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
