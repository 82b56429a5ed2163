// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

func TestACallerIsSlowedDownByManyCallsThatAreRefusedAndByNoSingleOne(t *testing.T) {
	c := newCaller("app", bounds{calls: 1, memory: 1})
	for n := 1; n < strainCalls; n++ {
		c.strain()
		if c.strained() {
			t.Fatalf("strained after %d calls, want %d", n, strainCalls)
		}
	}
	// As if all of them had been a while ago.
	c.strainsSince.Add(-int64(2 * strainTime))
	c.strain()
	if c.strained() {
		t.Error("strained by calls that are too far apart")
	}
	for range strainCalls {
		c.strain()
	}
	if !c.strained() {
		t.Errorf("not strained after %d calls", strainCalls)
	}
	c.strainedAt.Add(-int64(strainTime + time.Hour))
	if c.strained() {
		t.Error("strained for longer than it should be")
	}
}
