// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// quietTime is how long nothing more is logged after a problem was.
	quietTime = time.Minute
	// maxProblem is how much of a problem is logged, in bytes: collectors answer
	// with what they like.
	maxProblem = 512
)

// problems logs what is wrong with exports, a line a minute at most.
type problems struct {
	logger *slog.Logger

	mu      sync.Mutex
	logged  time.Time // zero while all is well
	unsaid  int
	failing map[string]bool
}

func (p *problems) failed(exporter string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing[exporter] = true
	if !p.logged.IsZero() && time.Since(p.logged) < quietTime {
		p.unsaid++
		return
	}
	problem := err.Error()
	if len(problem) > maxProblem {
		problem = problem[:maxProblem] + "…"
	}
	p.logger.Warn("spans could not be exported and are dropped; calls are not affected",
		"exporter", exporter, "problem", problem, "unsaid", p.unsaid)
	p.logged, p.unsaid = time.Now(), 0
}

func (p *problems) succeeded(exporter string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing[exporter] {
		delete(p.failing, exporter)
		p.logger.Info("spans are exported again", "exporter", exporter)
	}
}

// Handle implements otel.ErrorHandler, for what libraries complain about.
func (p *problems) Handle(err error) { p.failed("", err) }
