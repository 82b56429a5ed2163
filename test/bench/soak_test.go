// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMemoryGrewWhere(t *testing.T) {
	const mib = 1 << 20
	for sentence, test := range map[string]struct {
		turns []int64
		grew  bool
	}{
		"each later turn leaves more than any earlier one":  {[]int64{15 * mib, 16 * mib, 17*mib + 1, 18 * mib}, true},
		"a little is left by each of many":                  {[]int64{10 * mib, 11 * mib, 12 * mib, 13*mib + 1, 14*mib + 2}, false},
		"not where the difference is what is allowed":       {[]int64{15 * mib, 16 * mib, 17 * mib, 18 * mib}, false},
		"not where one of the later turns leaves no more":   {[]int64{15 * mib, 16 * mib, 40 * mib, 16 * mib}, false},
		"not where one of the earlier turns left that much": {[]int64{40 * mib, 16 * mib, 40 * mib, 40 * mib}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := halvesOf(test.turns); got.grew(soakLiveGrowth) != test.grew {
				t.Errorf("%s: grew %t, want %t", got, !test.grew, test.grew)
			}
		})
	}
}

func TestTheBrokersMetricsTell(t *testing.T) {
	const base = "# HELP go_goroutines Number\ngo_goroutines 55\ngo_goroutines_max 99\ngo_memstats_mallocs_total 1.0e+03\n"
	for sentence, test := range map[string]struct {
		collections int
		percent     int
		want        reported
	}{
		"no live heap before the first collection":            {0, 400, reported{allocations: 1000, goroutines: 55}},
		"half of the heap of the next collection by default":  {7, 100, reported{allocations: 1000, goroutines: 55, collections: 7, live: 16 << 20}},
		"a fifth of it where the collector may wait for that": {7, 400, reported{allocations: 1000, goroutines: 55, collections: 7, live: 32 << 20 / 5}},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, base+"go_gc_duration_seconds_count %d\ngo_gc_gogc_percent %d\ngo_memstats_next_gc_bytes %d\n", test.collections, test.percent, 32<<20)
			}))
			defer server.Close()
			got, err := readMetrics(t.Context(), strings.TrimPrefix(server.URL, "http://"))
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, base) }))
	defer server.Close()
	if _, err := readMetrics(t.Context(), strings.TrimPrefix(server.URL, "http://")); err == nil || !strings.HasPrefix(err.Error(), "the broker's metrics have no go_") {
		t.Errorf("got %v where metrics are missing", err)
	}
}
