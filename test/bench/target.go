// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// target is a ratio that the broker should reach.
type target struct {
	about    string
	loads    []string // empty for all
	callers  []int    // empty for all
	ways     []string
	against  string
	value    func(sample) float64
	wanted   float64
	atMost   bool // maximum, else minimum
	inverted bool // the ratio is against divided by way
}

var small = []string{"hash-32", "hash-4k", "encrypt"}

var targets = []target{
	{about: "throughput of unary calls, of the bare server's", ways: []string{unary}, against: floor, value: perSecond, wanted: 0.95},
	{about: "median latency of unary calls, of the bare server's", ways: []string{unary}, against: floor, value: latency, wanted: 1.05, atMost: true},
	{about: "throughput of `Exchange`, of the bare server's", loads: small, ways: []string{exchange, library}, against: floor, value: perSecond, wanted: 3},
	{about: "throughput of `Exchange`, of one multiplexed connection", loads: small, callers: []int{16, 64}, ways: []string{library}, against: multiplexed, value: perSecond, wanted: 0.6},
	{about: "time of a certificate, of that in process", loads: []string{"certificate"}, callers: []int{1}, ways: []string{unary, exchange}, against: inProcess, value: latency, wanted: 1.10, atMost: true},
	{about: "time of a certificate where processors are busy, of that in process", loads: []string{"certificate"}, callers: []int{16, 64}, ways: []string{unary, exchange}, against: inProcess, value: perSecond, wanted: 1.10, atMost: true, inverted: true},
	{about: "throughput with an audit record of each call, of the broker's without", ways: []string{audited}, against: unary, value: perSecond, wanted: 0.8},
	{about: "throughput of hashes of 1 MiB, of that in process", loads: []string{"hash-1m", "hash-1m-sha256"}, ways: []string{unary}, against: inProcess, value: perSecond, wanted: 0.8},
}

// comparisons compare the broker with the broker of --before, if there is one. On a machine
// that others use, results differ by a fifth by chance.
func comparisons() []target {
	var all []target
	for _, way := range brokerWays {
		all = append(all,
			target{about: "throughput, of the broker before", ways: []string{way}, against: earlier + way, value: perSecond, wanted: 0.8},
			target{about: "median latency, of the broker before", ways: []string{way}, against: earlier + way, value: latency, wanted: 1.2, atMost: true})
	}
	return all
}

// Limits of what a broker takes.
const (
	idleTarget  = 16 << 20
	busyTarget  = 64 << 20
	startTarget = 50 * time.Millisecond
)

// verdict is a target with what was measured.
type verdict struct {
	target  *target
	load    string
	way     string
	callers int
	found   measurement.Spread
	met     bool
}

// judge compares the results with the targets. It leaves out targets that were not
// measured.
func (r *results) judge() []verdict {
	var verdicts []verdict
	all := append(slices.Clone(targets), comparisons()...)
	for i := range all {
		t := &all[i]
		for _, c := range r.cells {
			if !slices.Contains(t.ways, c.way) || (t.loads != nil && !slices.Contains(t.loads, c.load)) || (t.callers != nil && !slices.Contains(t.callers, c.callers)) {
				continue
			}
			found, ok := t.ratio(c, r.cell(c.load, t.against, c.callers))
			if !ok {
				continue
			}
			met := found.Median >= t.wanted
			if t.atMost {
				met = found.Median <= t.wanted
			}
			verdicts = append(verdicts, verdict{t, c.load, c.way, c.callers, found, met})
		}
	}
	return verdicts
}

// ratio returns the ratio of the target's way to the way that it is compared with.
func (t *target) ratio(of, to *cell) (measurement.Spread, bool) {
	if t.inverted {
		of, to = to, of
	}
	return ratio(of, to, t.value)
}
