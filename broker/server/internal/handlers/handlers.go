// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// Handlers serves the operations for all generations of the wire contract.
type Handlers struct {
	logger  *slog.Logger
	Metrics *telemetry.Metrics
	Tracer  *tracing.Tracer // nil for no spans
	Keys    keys.Provider   // nil for no keys by id
	// development admits one measurement at a time. It is nil if the development service
	// is off.
	development chan struct{}

	// Served is the set of profiles in use, nil before the first one.
	Served atomic.Pointer[ServedSet]
}

// NewHandlers returns handlers that have no profiles yet.
func NewHandlers(logger *slog.Logger, metrics *telemetry.Metrics) *Handlers {
	return &Handlers{logger: logger, Metrics: metrics}
}

// Call is one request of any generation of the wire contract.
type Call struct {
	Operation profile.Operation
	Context   context.Context
	// Deadline is when the call has to end, in addition to the deadline of Context. It is
	// zero for no deadline.
	Deadline time.Time
	// Counters is set once the profile is known. Warning is set if the profile is
	// deprecated.
	Counters *telemetry.Counters
	Warning  []byte
	// Metadata is the metadata of the request as [requests.Retag] returned it, and profile
	// is the profile of the call. Spans have both.
	Metadata []byte
	profile  *profile.Compiled
	// use is what the call uses of the profile. It counts if the call succeeds.
	use profile.Use
	// PrivateKey is the key of the issuer in a request for a certificate, nil if the
	// request does not have it.
	PrivateKey []byte
}

// Ended counts a call that has ended, and makes a span of it if it is sampled. batched is
// whether a stream of Exchange carried the call.
func (h *Handlers) Ended(c *Call, batched bool, code codes.Code, started, ended time.Time) {
	h.Metrics.End(c.Operation, c.Counters, code, ended.Sub(started))
	if code == codes.OK {
		c.Counters.Used(&c.use, ended)
	}
	if h.Tracer != nil {
		h.trace(c, batched, code, started, ended)
	}
}

// Panicked logs a panic of a request, and returns the error for the client. The log has the
// stack, and the text of the panic only if it is an error of the Go runtime: any other text
// could quote an input. what names the request.
func (h *Handlers) Panicked(what string, cause any) error {
	text := fmt.Sprintf("%T", cause)
	if err, ok := cause.(runtime.Error); ok {
		text = err.Error()
	}
	h.logger.LogAttrs(context.Background(), slog.LevelError, "a request failed because of a defect in the broker; the others are not affected",
		slog.String("operation", what), slog.String("cause", text), slog.String("stack", string(debug.Stack())))
	return status.Errorf(codes.Internal, "%s: failed because of a defect in the broker, whose log has the details", what)
}
