// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// result is what one fault did.
type result struct {
	fault *fault
	// lasted is the time from the beginning of the fault until its cause was removed.
	lasted time.Duration
	// served is the time from the end of the fault until the last broker served the newest profile,
	// and right the time until everything was right again. A negative value is before the end.
	served, right time.Duration
	// servedAfterWrite is from the accepted change of the profile.
	servedAfterWrite        time.Duration
	calls, failed, repeated int64
	errors                  []string // texts that applications had not seen before
	write                   write
	withBroker, without     admission
	notes                   []string
	problems                []string // what must not be
}

func (r *result) print() {
	runner.Progress("  %d calls, %d failed, %d repeated; refused: %d of %d pods with a broker, %d of %d others; served %s and right %s after the fault",
		r.calls, r.failed, r.repeated, r.withBroker.refused, r.withBroker.tries, r.without.refused, r.without.tries, seconds(r.served), seconds(r.right))
	for _, each := range []string{r.write.said, r.withBroker.said, r.without.said} {
		if each != "" {
			runner.Progress("  refused: %s", each)
		}
	}
	for _, each := range r.problems {
		runner.Progress("  WRONG: %s", each)
	}
}

// results are the results of all faults, and the conditions of the run.
type results struct {
	began               time.Time
	machine, load       string
	version, kubernetes string
	all                 []*result
}

func newResults(s *suite) *results {
	r := &results{began: time.Now(), machine: measurement.Machine(), load: measurement.Load(), version: runner.Version("."), kubernetes: "unknown"}
	if version, err := s.Clientset.Discovery().ServerVersion(); err == nil {
		r.kubernetes = version.GitVersion
	}
	return r
}

func (r *results) add(one *result) { r.all = append(r.all, one) }

// failed returns an error that names all violations.
func (r *results) failed() error {
	var problems []error
	for _, each := range r.all {
		for _, problem := range each.problems {
			problems = append(problems, fmt.Errorf("%s: %s", each.fault.name, problem))
		}
	}
	return errors.Join(problems...)
}
