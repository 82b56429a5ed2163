// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
)

// maxErrors bounds the different error texts that are kept.
const maxErrors = 20

// recorder counts what the workers report, and writes a line of JSON for each event that matters to readers of the log.
type recorder struct {
	mu     sync.Mutex
	stats  stats.Stats
	output io.Writer
}

func newRecorder(profile string, output io.Writer) *recorder {
	return &recorder{output: output, stats: stats.Stats{
		Started: time.Now(), Profile: profile, Errors: []string{}, Observed: []stats.Observation{},
	}}
}

// event writes one line. It is called with the lock held or before the workers start.
func (r *recorder) event(name string, fields map[string]any) {
	fields["time"] = time.Now().UTC().Format(time.RFC3339Nano)
	fields["event"] = name
	line, err := json.Marshal(fields)
	if err != nil {
		panic(err) // the fields are strings, numbers and Stats
	}
	fmt.Fprintf(r.output, "%s\n", line)
}

func (r *recorder) started(fields map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event("started", fields)
}

// hashed counts a successful call with its begin, its end and the algorithm of the reply.
func (r *recorder) hashed(algorithm string, began, ended time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Calls++
	if took := float64(ended.Sub(began)) / float64(time.Millisecond); took > r.stats.SlowestMilliseconds {
		r.stats.SlowestMilliseconds = took
	}
	if r.stats.FirstHash == nil {
		r.stats.FirstHash = &ended
		r.event("first hash", map[string]any{"algorithm": algorithm, "profile": r.stats.Profile})
	}
	observed := r.stats.Observed
	last := len(observed) - 1
	switch {
	case last >= 0 && observed[last].Algorithm == algorithm:
		observed[last].Calls++
		return
	case last >= 1 && observed[last-1].Algorithm == algorithm && began.Before(observed[last].First):
		// The broker answered before the change, but the first answer after the change arrived earlier.
		observed[last-1].Calls++
		return
	case last >= 0:
		r.event("algorithm changed", map[string]any{"from": observed[last].Algorithm, "to": algorithm, "calls": r.stats.Calls})
	}
	r.stats.Algorithm = algorithm
	r.stats.Observed = append(r.stats.Observed, stats.Observation{Algorithm: algorithm, First: ended, Calls: 1})
}

// failed counts a HashData call that failed.
func (r *recorder) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Calls++
	r.stats.Failed++
	r.keep("failed", err)
}

// checked counts a health check, with the error if it failed.
func (r *recorder) checked(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.HealthChecks++
	if err != nil {
		r.stats.HealthFailed++
		r.keep("health", err)
	}
}

// retried counts a call that is repeated because of an error.
func (r *recorder) retried(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Retries++
	r.keep("repeated", err)
}

// keep remembers and writes the text of an error when it occurs for the first time.
func (r *recorder) keep(outcome string, err error) {
	text := outcome + ": " + err.Error()
	if len(r.stats.Errors) >= maxErrors || slices.Contains(r.stats.Errors, text) {
		return
	}
	r.stats.Errors = append(r.stats.Errors, text)
	r.event("error", map[string]any{"outcome": outcome, "error": err.Error()})
}

// snapshot returns a copy that the workers do not change.
func (r *recorder) snapshot() stats.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	copied := r.stats
	copied.Now = time.Now()
	copied.Errors = slices.Clone(copied.Errors)
	copied.Observed = slices.Clone(copied.Observed)
	return copied
}

// ended writes the last line, with all counts.
func (r *recorder) ended() stats.Stats {
	final := r.snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event("ended", map[string]any{"stats": final})
	return final
}
