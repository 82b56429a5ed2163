// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

// The broker throttles a caller for throttleTime after throttleMisuses misuses within
// throttleTime. A misuse is a call that exceeds a limit of the caller, or that the client cancels
// before its request has arrived. While a caller is throttled, the broker reads at most
// throttledRead bytes of a connection, and then nothing for throttledPause. With throttledRead
// bytes a client can begin and cancel some thirty calls.
const (
	throttleTime    = 100 * time.Millisecond
	throttleMisuses = 16
	throttledRead   = 1 << 10
	throttledPause  = time.Millisecond
)

// All bytes that a client sends use up the allowance of its caller, because frames of a few bytes
// cost more to read than to send. When the allowance is used up, each misuseBytes bytes count as
// one misuse. Each call and each message adds twice its size to the allowance, because it arrives
// in frames, and because the client answers replies with frames, too. A message is added once it
// has its memory, before most of its bytes arrive. So the allowance has room for all messages
// that have memory.
const (
	misuseBytes    = 32 << 10
	allowanceBytes = 8 << 20
)

// maxAllowance returns the largest allowance in bytes, which a new caller has.
func (c *Caller) maxAllowance() int64 { return allowanceBytes + c.memory }

// received subtracts bytes that clients have sent from the allowance.
func (c *Caller) received(bytes int) {
	if c.allowance.Add(-int64(bytes)) < 0 {
		c.allowance.Add(misuseBytes)
		c.noteMisuse()
	}
}

// credit adds to the allowance for a call or a message of this many bytes.
func (c *Caller) credit(bytes int) {
	if most := c.maxAllowance(); c.allowance.Add(2*int64(bytes)) > most {
		c.allowance.Store(most)
	}
}

// noteMisuse counts a misuse.
func (c *Caller) noteMisuse() {
	now := clock.Nanos(time.Now())
	if now-c.misusesSince.Load() > int64(throttleTime) {
		c.misusesSince.Store(now)
		c.misuses.Store(0)
	}
	if c.misuses.Add(1) >= throttleMisuses {
		c.throttledAt.Store(now)
	}
}

// Misuses returns the count of misuses. The count starts again with the first misuse after
// throttleTime.
func (c *Caller) Misuses() int { return int(c.misuses.Load()) }

// throttled reports whether the caller is throttled.
func (c *Caller) throttled() bool { return c.throttledSince(time.Now().Add(-throttleTime)) }

// throttledSince reports whether the caller had too many misuses after t.
func (c *Caller) throttledSince(t time.Time) bool {
	at := c.throttledAt.Load()
	return at != 0 && at > clock.Nanos(t)
}
