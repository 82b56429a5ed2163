// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// reported has the counts that a server reports.
type reported struct {
	allocations uint64 // objects since it began
	goroutines  uint64
	// collections is how often Go's collector ran; only the broker reports it.
	collections uint64
	// live is the heap after the last collection, in bytes, with half of the stacks and
	// of the program's variables; 0 before the first collection.
	live int64
}

// readMetrics asks the broker's status port.
func readMetrics(ctx context.Context, address string) (reported, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return reported{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reported{}, err
	}
	defer response.Body.Close()
	found := map[string]float64{
		"go_memstats_mallocs_total": -1, "go_goroutines": -1, "go_gc_duration_seconds_count": -1, "go_memstats_next_gc_bytes": -1, "go_gc_gogc_percent": -1,
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if _, wanted := found[name]; wanted {
			if found[name], err = strconv.ParseFloat(text, 64); err != nil {
				return reported{}, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return reported{}, err
	}
	for name, value := range found {
		if value < 0 {
			return reported{}, fmt.Errorf("the broker's metrics have no %s", name)
		}
	}
	t := reported{
		allocations: uint64(found["go_memstats_mallocs_total"]), goroutines: uint64(found["go_goroutines"]),
		collections: uint64(found["go_gc_duration_seconds_count"]),
	}
	if t.collections > 0 {
		// The next collection begins when the heap has grown by GOGC percent of the sum of the live heap, the stacks and the variables.
		t.live = int64(found["go_memstats_next_gc_bytes"] / (1 + found["go_gc_gogc_percent"]/100))
	}
	return t, nil
}
