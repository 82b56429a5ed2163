// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"
)

// attack is what a does while b is watched.
type attack struct {
	name, about string
	// run goes on until ctx ends, or ends before. What the broker does to it is in the
	// tally; an error says that the attack could not be made.
	run func(ctx context.Context, t *target) error
	// polite ones are no abuse: none of their calls may fail.
	polite bool
	// least is how long they may take, where that is longer than others.
	least time.Duration
	// tested ones are part of the tests.
	tested bool
}

// attacks are all of them, family by family.
func attacks() []attack {
	return slices.Concat(
		repeatedFields(), compressedMessages(), halfSentCalls(), waitingCalls(), unreadReplies(), largeHeaders(),
		manyConnections(), costlyCalls(), manyFrames(), brokenFrames(), manyStreams(), shortDeadlines(),
	)
}
