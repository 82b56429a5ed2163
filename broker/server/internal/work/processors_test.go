// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"
	"time"
)

func TestOneProcessorIsUsedAgainAfterTheClockWasSetBack(t *testing.T) {
	now := time.Now()
	p := &Processors{adapts: true}
	t.Cleanup(func() { p.use(false) })
	p.needed.Store(now.Add(time.Hour).UnixNano()) // from before
	if p.useOne(now); !p.Quiet() {
		t.Error("the process still uses all processors")
	}
	p.needed.Store(now.Add(time.Hour).UnixNano())
	p.UseAll()
	if p.useOne(time.Now()); p.Quiet() {
		t.Error("the process uses one processor although it needs all")
	}
	if p.useOne(time.Now().Add(2 * quietTime)); !p.Quiet() {
		t.Error("the process still uses all processors after the time that it needed them")
	}
}
