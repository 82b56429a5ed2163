// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/leak"
)

const (
	// quietTime is the shortest time between two problems that are logged.
	quietTime = time.Minute
	// maxProblem is the maximum number of bytes of a problem that are logged, because a collector
	// may answer with a text of any length.
	maxProblem = 512
)

// problems logs why exports fail, at most one line a minute.
type problems struct {
	logger *slog.Logger
	// secrets are the values of headers, which a collector may quote.
	secrets [][]byte

	mu      sync.Mutex
	logged  time.Time // when the last problem was logged, zero for never
	omitted int       // how many problems were not logged since
	failing map[string]bool
}

func (p *problems) failed(exporter string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing[exporter] = true
	if !p.logged.IsZero() && time.Since(p.logged) < quietTime {
		p.omitted++
		return
	}
	problem := err.Error()
	if leak.In(problem, p.secrets...) {
		problem = "the collector's answer quotes a header of the request and is not shown"
	}
	if len(problem) > maxProblem {
		problem = problem[:maxProblem] + "…"
	}
	p.logger.Warn("the export of spans failed, and they are dropped; calls are not affected",
		"exporter", exporter, "problem", problem, "omitted", p.omitted)
	p.logged, p.omitted = time.Now(), 0
}

func (p *problems) succeeded(exporter string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing[exporter] {
		delete(p.failing, exporter)
		p.logger.Info("spans are exported again", "exporter", exporter)
	}
}

// Handle implements otel.ErrorHandler, for errors of the libraries.
func (p *problems) Handle(err error) { p.failed("", err) }
