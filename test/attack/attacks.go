// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"
)

// attack is what the caller a does while the caller b is measured.
type attack struct {
	name, about string
	// run attacks until ctx ends, or ends earlier. The tally counts the broker's reactions.
	// An error says that the attack could not be made.
	run func(ctx context.Context, t *target) error
	// polite says that the load is no abuse: none of its calls may fail.
	polite bool
	// least is the shortest duration of the attack, if it needs longer than others.
	least time.Duration
	// tested says that the attack is part of the tests.
	tested bool
}

// attacks are all attacks, family by family.
func attacks() []attack {
	return slices.Concat(
		repeatedFields(), compressedMessages(), halfSentCalls(), waitingCalls(), unreadReplies(), largeHeaders(),
		manyConnections(), costlyCalls(), manyFrames(), brokenFrames(), manyStreams(), shortDeadlines(),
	)
}
