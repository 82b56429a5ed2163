// SPDX-License-Identifier: Apache-2.0

// Package stats has what the demo application answers by HTTP, and the counts in its last line of output.
package stats

import (
	"net/http"
	"time"
)

// Stats has the counts since the start of the application. A call fails if it ends with an error after all repetitions
// that a released client makes, if its answer is malformed, or if the digest is wrong. Repetitions are not counted as
// calls, but in Retries.
type Stats struct {
	// Now is the application's clock at the time of the answer, Started at its start.
	Now     time.Time `json:"now"`
	Started time.Time `json:"started"`
	Profile string    `json:"profile"`
	// Calls is the number of HashData calls that ended, and Failed is the number of them that
	// failed.
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
	// Retries is the number of times that a call (of either kind) was repeated.
	Retries int64 `json:"retries"`
	// HealthChecks is the number of health checks that ended, and HealthFailed is the number of
	// them that failed or said another status than SERVING.
	HealthChecks int64 `json:"healthChecks"`
	HealthFailed int64 `json:"healthFailed"`
	// Errors are the first 20 different error texts, of failed calls and of repeated ones.
	Errors []string `json:"errors"`
	// Algorithm is the algorithm of the last answer. Observed has all algorithms in their order.
	Algorithm string        `json:"algorithm"`
	Observed  []Observation `json:"observed"`
	// FirstHash is when the first digest arrived; absent before.
	FirstHash *time.Time `json:"firstHash,omitempty"`
	// SlowestMilliseconds is the longest a successful call took, with its repetitions.
	SlowestMilliseconds float64 `json:"slowestMilliseconds"`
}

// Observation is a sequence of answers with the same algorithm.
type Observation struct {
	Algorithm string `json:"algorithm"`
	// First is when the first answer of the sequence arrived, Calls how many there were.
	First time.Time `json:"first"`
	Calls int64     `json:"calls"`
}

// Echo is the answer to a request for /echo: what the request had.
type Echo struct {
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// Seen returns when the first answer with an algorithm arrived at or after a point of time.
func (s *Stats) Seen(algorithm string, after time.Time) (time.Time, bool) {
	for _, each := range s.Observed {
		if each.Algorithm == algorithm && !each.First.Before(after) {
			return each.First, true
		}
	}
	return time.Time{}, false
}
