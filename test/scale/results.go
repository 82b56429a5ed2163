// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// results are the measurements, and the conditions of the run.
type results struct {
	options options
	began   time.Time
	took    time.Duration
	machine string
	// load is the load average at the start.
	load string
	// version is the operator's, and kubernetes the API server's.
	version, kubernetes string
	steps               []result
	bare                []bare
	// podBytes and snapshots are the sums over all pods: of their size, and of the
	// snapshots in them.
	podBytes, snapshots atomic.Int64
	// limited reports whether the operator had a memory limit.
	limited bool
	// errorLines are lines of the operator's log.
	errorLines []string
	kills      int
}

func newResults(o options) *results {
	return &results{options: o, began: time.Now(), machine: measurement.Machine(), load: measurement.Load(), version: runner.Version(".")}
}

// add adds a step and writes the report, so that a run that is ended has one, too.
func (r *results) add(m result, o *operator) error {
	r.steps = append(r.steps, m)
	var counted []string
	for _, k := range slices.Sorted(maps.Keys(m.requests)) {
		counted = append(counted, fmt.Sprintf("%s %d", k, m.requests[k]))
	}
	runner.Progress("  took %s; last pod %s, said %s; %s; polls %d; operator %s, API server %s, etcd %s, measurement %s; %s resident; etcd wrote %s",
		seconds(m.took), seconds(m.last), seconds(m.said), strings.Join(counted, ", "), m.polls, seconds(m.operator), seconds(m.apiServer), seconds(m.etcd), seconds(m.own), measurement.Mebibytes(m.peak), measurement.Mebibytes(m.stored.written))
	for _, what := range slices.Sorted(maps.Keys(m.refused)) {
		runner.Progress("  refused: %s, %d times", what, m.refused[what])
	}
	if err := r.look(o); err != nil || r.options.report == "" {
		return err
	}
	return runner.Write(r.options.report, r.markdown())
}

// look reads the log and the control group of the operator's process.
func (r *results) look(o *operator) (err error) {
	r.took = time.Since(r.began)
	if r.limited = o.group != nil; r.limited {
		if r.kills, err = o.group.Kills(); err != nil {
			return err
		}
	}
	r.errorLines, err = o.errorLines()
	return err
}

// failed returns an error if the operator lacked a right, was killed, or logged an error.
// A missed target is a result and not an error.
func (r *results) failed() error {
	var all []error
	for _, m := range r.steps {
		for what, count := range m.refused {
			if strings.HasSuffix(what, fmt.Sprint(": ", http.StatusForbidden)) {
				all = append(all, fmt.Errorf("%s: the operator has no right to %s (%d times)", m.name, what, count))
			}
		}
	}
	if r.kills > 0 {
		all = append(all, fmt.Errorf("the kernel ended the operator %d times, because it took more memory than its limit", r.kills))
	}
	for _, line := range r.errorLines {
		all = append(all, fmt.Errorf("the operator logged %s", line))
	}
	return errors.Join(all...)
}

func (r *results) step(id stepID) *result {
	for i := range r.steps {
		if r.steps[i].id == id {
			return &r.steps[i]
		}
	}
	return nil
}

// requestsOf sums requests of some kinds.
func (m *result) requestsOf(kinds ...kind) (sum int) {
	for _, k := range kinds {
		sum += m.requests[k]
	}
	return sum
}

// unexpected returns the requests that no idle operator should make.
func (m *result) unexpected() int {
	return m.requestsOf(kindSets, kindRecord, kindPods, kindStatuses, kindEvents, kindOther, kindReads)
}
