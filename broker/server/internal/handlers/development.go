// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// maxBenchmarkTime bounds a measurement and the wait for the one before it.
const maxBenchmarkTime = 5 * time.Second

// NothingDone is what FakeEndpoint says.
const NothingDone = "nothing was done"

// OfferDevelopment makes the handlers measure, one measurement at a time.
func (h *Handlers) OfferDevelopment() { h.development = make(chan struct{}, 1) }

// OffersDevelopment reports whether the handlers measure.
func (h *Handlers) OffersDevelopment() bool { return h.development != nil }

// Benchmark measures the operations and returns the times as JSON. Several at
// once would measure each other, so they wait for each other.
func (h *Handlers) Benchmark(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxBenchmarkTime)
	defer cancel()
	var measured []engine.Measurement
	var err error
	select {
	case h.development <- struct{}{}:
		func() {
			defer func() { <-h.development }() // a defect holds up no later measurement
			measured, err = engine.Benchmark(ctx)
		}()
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "", status.Error(codes.Canceled, "Benchmark: the call ended before the measurement did")
	case errors.Is(err, context.DeadlineExceeded):
		return "", status.Errorf(codes.DeadlineExceeded, "Benchmark: the measurement did not end within %s or the time that the call has", maxBenchmarkTime)
	case err != nil:
		h.logger.ErrorContext(ctx, "a measurement failed", "error", err)
		return "", status.Error(codes.Internal, "Benchmark: failed for a reason inside the broker, whose log has it")
	}
	type result struct {
		Name string `json:"name"`
		Time int64  `json:"avgTime"` // nanoseconds
	}
	text := struct {
		Results []result `json:"results"`
	}{}
	for _, m := range measured {
		text.Results = append(text.Results, result{m.Name, m.Average.Nanoseconds()})
	}
	encoded, err := json.Marshal(text)
	if err != nil {
		return "", err
	}
	return string(encoded), nil
}
