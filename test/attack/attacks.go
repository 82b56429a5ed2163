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
	// It returns an error if the attack could not be made.
	run func(ctx context.Context, t *target) error
	// polite reports whether the load is no abuse. Then none of its calls may fail.
	polite bool
	// least is the shortest duration of the attack, if it needs more time than other attacks.
	least time.Duration
	// tested reports whether the tests run the attack.
	tested bool
}

// attacks are all attacks, family by family.
func attacks() []attack {
	return slices.Concat(
		repeatedFields(), compressedMessages(), halfSentCalls(), waitingCalls(), unreadReplies(), largeHeaders(),
		manyConnections(), costlyCalls(), manyFrames(), brokenFrames(), manyStreams(), shortDeadlines(),
	)
}
