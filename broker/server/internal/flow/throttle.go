// SPDX-License-Identifier: Apache-2.0

package flow

import "time"

// A caller is throttled for throttleTime after throttleMisuses misuses within that time. A
// misuse is a call that was refused for the limits of the caller, or was given up before its
// request had come. While a caller is throttled, the broker reads throttledRead bytes of a
// connection at a time, and then nothing for throttledPause: with so many bytes a client
// can begin some thirty calls, and end them at once.
const (
	throttleTime    = 100 * time.Millisecond
	throttleMisuses = 16
	throttledRead   = 1 << 10
	throttledPause  = time.Millisecond
)

// Bytes that are neither calls nor messages use up the allowance of the caller, since
// frames of a few bytes cost more to read than to send. Without allowance, each
// misuseBytes of them count as one misuse. Each call and each message adds twice its size
// to the allowance, because it comes in frames, and because the client answers replies
// with frames, too. A message is added once it has its memory, which is before most of it
// comes. So the allowance has room for all messages that have memory.
const (
	misuseBytes    = 32 << 10
	allowanceBytes = 8 << 20
)

// maxAllowance returns the allowance at the beginning and at most, in bytes.
func (c *Caller) maxAllowance() int64 { return allowanceBytes + c.memory }

// received takes bytes that came from clients off the allowance.
func (c *Caller) received(bytes int) {
	if c.allowance.Add(-int64(bytes)) < 0 {
		c.allowance.Add(misuseBytes)
		c.noteMisuse()
	}
}

// credit adds to the allowance for a call or a message of so many bytes.
func (c *Caller) credit(bytes int) {
	if most := c.maxAllowance(); c.allowance.Add(2*int64(bytes)) > most {
		c.allowance.Store(most)
	}
}

// noteMisuse counts a misuse.
func (c *Caller) noteMisuse() {
	now := time.Now().UnixNano()
	if now-c.misusesSince.Load() > int64(throttleTime) {
		c.misusesSince.Store(now)
		c.misuses.Store(0)
	}
	if c.misuses.Add(1) >= throttleMisuses {
		c.throttledAt.Store(now)
	}
}

// Misuses returns how many misuses were counted of late.
func (c *Caller) Misuses() int { return int(c.misuses.Load()) }

// throttled reports whether the caller is throttled.
func (c *Caller) throttled() bool { return c.throttledSince(time.Now().Add(-throttleTime)) }

// throttledSince reports whether the caller was throttled, again or anew, after a time.
func (c *Caller) throttledSince(t time.Time) bool {
	at := c.throttledAt.Load()
	return at != 0 && at > t.UnixNano()
}
