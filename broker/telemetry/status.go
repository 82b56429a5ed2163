// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
)

// Status has the settings and the data of the status port.
type Status struct {
	// Metrics are the metrics at /metrics.
	Metrics *Metrics
	// Profiles returns the state for /profiles.
	Profiles func() directory.State
	// Ready returns the empty string if the broker serves requests. Otherwise it returns what is
	// missing in a few words.
	Ready func() string
	// Crowded is called for each new connection while there are more than eight. It has to
	// return at once. It may be nil.
	Crowded func()
	// Logger logs errors of the server.
	Logger *slog.Logger
}

// quietConnections is the number of connections that the probes of a kubelet, the operator and a
// few Prometheus servers need at one time.
const quietConnections = 8

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// profilesAnswer is the body of /profiles. Revision is 0 if sets need no signature.
type profilesAnswer struct {
	Digest   string  `json:"digest"`
	Revision int64   `json:"revision"`
	Since    *string `json:"since"`
	Reason   string  `json:"reason"`
	// Withdrawn are the first maxWithdrawn profiles out of service. Older brokers do not
	// have the field.
	Withdrawn []withdrawn `json:"withdrawn,omitempty"`
	// Rollouts are the first maxRollouts profiles that are rolled out. Older brokers do not
	// have the field.
	Rollouts []rolloutAnswer `json:"rollouts,omitempty"`
}

// rolloutAnswer says which of two profiles of this name the broker serves, and has the results of
// its calls since then, see [RolloutCalls].
type rolloutAnswer struct {
	Profile string `json:"profile"`
	Digest  string `json:"digest"`
	New     bool   `json:"new"`
	Refused bool   `json:"refused,omitempty"`
	Calls   uint64 `json:"calls"`
	Failed  uint64 `json:"failed"`
}

// withdrawn is a profile that was served and is out of service.
type withdrawn struct {
	Profile string `json:"profile"`
	Since   string `json:"since"`
}

// maxWithdrawn and maxRollouts bound the answer, because operators read at most 8 KiB.
const (
	maxWithdrawn = 8
	maxRollouts  = 8
)

// Server returns the HTTP server of the status port. It allows only what its paths need:
// few connections, headers of 8 KiB, no bodies, and short timeouts.
func (s *Status) Server() *Port {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+contract.HealthPath, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET "+contract.ReadyPath, func(w http.ResponseWriter, _ *http.Request) {
		if missing := s.Ready(); missing != "" {
			answer(w, http.StatusServiceUnavailable, "not ready: "+missing)
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET "+contract.ProfilesPath, s.profiles)
	var turn sync.Mutex
	mux.HandleFunc("GET "+contract.UsesPath, func(w http.ResponseWriter, _ *http.Request) { s.uses(w, &turn) })
	errorLog := slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn)
	mux.Handle("GET "+contract.MetricsPath, promhttp.HandlerFor(inTurn(&turn, s.Metrics.registry), promhttp.HandlerOpts{
		ErrorLog: errorLog,
		// More scrapes at one time would only use more memory.
		MaxRequestsInFlight: 4,
		// Only this format has exemplars.
		EnableOpenMetrics: true,
		Timeout:           5 * time.Second,
	}))
	return newPort(s.Crowded, &http.Server{
		Handler:           withoutBody(mux),
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          errorLog,
	})
}

// restTime is the pause between two collections of metrics or uses. It is several times as long
// as a collection takes.
const restTime = 10 * time.Millisecond

// takeTurn waits for a turn. The returned function gives the turn to the next request after
// restTime. So even many requests for metrics or uses take little processor time from calls.
func takeTurn(turn *sync.Mutex) func() {
	turn.Lock()
	return func() { time.AfterFunc(restTime, turn.Unlock) }
}

// inTurn collects metrics for one request at a time.
func inTurn(turn *sync.Mutex, all prometheus.Gatherer) prometheus.GathererFunc {
	return func() ([]*dto.MetricFamily, error) {
		defer takeTurn(turn)()
		return all.Gather()
	}
}

// withoutBody refuses requests with a body, and does not read the body.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// Without the deadline, the server would read the body to use the connection again.
		// The error is ignored because the recorder of a test has no deadline.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		w.Header().Set("Connection", "close")
		answer(w, http.StatusRequestEntityTooLarge, "found a request with a body, expected one without")
	})
}

func (s *Status) profiles(w http.ResponseWriter, _ *http.Request) {
	state := s.Profiles()
	body := profilesAnswer{Digest: state.Digest, Revision: state.Revision, Reason: string(state.Reason)}
	if !state.Since.IsZero() {
		since := state.Since.UTC().Format(timeLayout)
		body.Since = &since
	}
	for _, out := range state.Withdrawn[:min(len(state.Withdrawn), maxWithdrawn)] {
		body.Withdrawn = append(body.Withdrawn, withdrawn{out.Profile, out.Since.UTC().Format(timeLayout)})
	}
	rollouts := s.Metrics.Rollouts()
	for _, r := range rollouts[:min(len(rollouts), maxRollouts)] {
		body.Rollouts = append(body.Rollouts, rolloutAnswer{r.Profile, r.Digest, r.New, r.Refused, r.Calls, r.Failed})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.Logger.Debug("the answer to /profiles could not be written", "error", err)
	}
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // fails only if the client has gone
}
