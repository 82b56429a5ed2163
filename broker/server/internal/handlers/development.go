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

// maxBenchmarkTime bounds a measurement together with the wait for the measurement before
// it.
const maxBenchmarkTime = 5 * time.Second

// NothingDone is the text of the reply of FakeEndpoint.
const NothingDone = "nothing was done"

// OfferDevelopment lets the handlers serve Benchmark, with one measurement at a time.
func (h *Handlers) OfferDevelopment() { h.development = make(chan struct{}, 1) }

// OffersDevelopment reports whether OfferDevelopment was called.
func (h *Handlers) OffersDevelopment() bool { return h.development != nil }

// Benchmark measures the operations and returns the times as JSON, in nanoseconds.
// Measurements that run at the same time would disturb each other, so they wait for each
// other. A call takes at most maxBenchmarkTime.
func (h *Handlers) Benchmark(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxBenchmarkTime)
	defer cancel()
	var measured []engine.Measurement
	var err error
	select {
	case h.development <- struct{}{}:
		func() {
			defer func() { <-h.development }() // deferred, so that later measurements can run even after a panic
			measured, err = engine.Benchmark(ctx)
		}()
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "", status.Error(codes.Canceled, "Benchmark: the call ended before the measurement did")
	case errors.Is(err, context.DeadlineExceeded):
		return "", status.Errorf(codes.DeadlineExceeded, "Benchmark: the measurement did not end within %s or before the deadline of the call", maxBenchmarkTime)
	case err != nil:
		h.logger.ErrorContext(ctx, "a measurement failed", "error", err)
		return "", status.Error(codes.Internal, "Benchmark: failed because of an error inside the broker; the broker's log has the details")
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
