// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// median returns the median of values in any order: of an even number of values the middle
// between the two in the middle, of no values 0.
func median[T ~int | ~int64 | ~float64](values []T) T {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	lower, upper := sorted[(n-1)/2], sorted[n/2]
	return lower + (upper-lower)/2
}

// spread is a median with its quartiles.
type spread struct{ Low, Median, High float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{sorted[n/4], median(values), sorted[n-1-n/4]}
}

// each takes one value from each sample.
func each[T any](samples []sample, of func(sample) T) []T {
	var values []T
	for _, s := range samples {
		values = append(values, of(s))
	}
	return values
}

// errors returns how many calls of a cell failed.
func (c *cell) errors() int {
	n := 0
	for _, s := range c.samples {
		n += s.Errors
	}
	return n
}

// ratio compares cells round by round, because the machine's other work changes from one
// round to the next. It is empty if a call failed.
func ratio(of, to *cell, value func(sample) float64) (spread, bool) {
	if of == nil || to == nil || of.errors() > 0 || to.errors() > 0 {
		return spread{}, false
	}
	var found []float64
	for i := range of.samples {
		if below := value(to.samples[i]); below > 0 {
			found = append(found, value(of.samples[i])/below)
		}
	}
	return spreadOf(found), len(found) > 0
}

func perSecond(s sample) float64 { return s.PerSecond }
func latency(s sample) float64   { return float64(s.P50) }
