// SPDX-License-Identifier: Apache-2.0

package sessionbench

import (
	"testing"
	"time"
)

func TestAPercentileIsTheSmallestTimeThatSoManyDoNotExceed(t *testing.T) {
	sorted := make([]time.Duration, 200)
	for i := range sorted {
		sorted[i] = time.Duration(i + 1)
	}
	for p, want := range map[int]time.Duration{50: 100, 95: 190, 99: 198, 100: 200} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("of 200 times, the percentile %d is number %d, want %d", p, got, want)
		}
	}
	for _, p := range []int{50, 95, 99} {
		if got := percentile(sorted[:1], p); got != 1 {
			t.Errorf("of one time, the percentile %d is number %d", p, got)
		}
	}
}

func TestTheRateCountsTheTimeInOperations(t *testing.T) {
	// Two connections made 100 and 50 operations, each within half a second.
	workers := []*worker{
		{times: [][]time.Duration{make([]time.Duration, 100)}, spent: time.Second / 2},
		{times: [][]time.Duration{make([]time.Duration, 50)}, spent: time.Second / 2, failed: 3},
		{times: [][]time.Duration{nil}},
	}
	var r Row
	r.sum(workers)
	if r.PerSecond != 300 || r.Failed != 3 {
		t.Errorf("%f a second and %d failed, want 300 and 3", r.PerSecond, r.Failed)
	}
}
