// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"
)

// attack is the load of the caller a while the caller b is measured.
type attack struct {
	name, about string
	// run attacks until ctx ends, or ends earlier. The tally counts the broker's reactions.
	// An error says that the attack could not be made.
	run func(ctx context.Context, t *target) error
	// polite reports whether the load is no abuse, so that none of its calls may fail.
	polite bool
	// least is the shortest duration of the attack, if it needs longer than others.
	least time.Duration
	// tested reports whether the attack is part of the tests.
	tested bool
}

// attacks are all attacks, family by family.
func attacks() []attack {
	return slices.Concat(
		repeatedFields(), compressedMessages(), halfSentCalls(), waitingCalls(), unreadReplies(), largeHeaders(),
		manyConnections(), costlyCalls(), manyFrames(), brokenFrames(), manyStreams(), shortDeadlines(),
	)
}
