// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/crypto-broker/crypto-broker-operator/test/measurement"

// each returns one value of each sample.
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
func ratio(of, to *cell, value func(sample) float64) (measurement.Spread, bool) {
	if of == nil || to == nil || of.errors() > 0 || to.errors() > 0 {
		return measurement.Spread{}, false
	}
	var found []float64
	for i := range of.samples {
		if below := value(to.samples[i]); below > 0 {
			found = append(found, value(of.samples[i])/below)
		}
	}
	return measurement.SpreadOf(found), len(found) > 0
}

func perSecond(s sample) float64 { return s.PerSecond }
func latency(s sample) float64   { return float64(s.P50) }
