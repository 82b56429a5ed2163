// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// trace makes a span of a call that has ended, if the call is sampled. It returns the id of the
// trace, empty if there is no span. Tracer must not be nil.
func (h *Handlers) trace(c *Call, code codes.Code, started, finished time.Time) (traceID string) {
	defer func() {
		if cause := recover(); cause != nil {
			_ = h.Panicked("the span of "+c.Operation.String(), cause) // the error is for the client, which has its reply already
		}
	}()
	method, called := grpc.Method(c.Context)
	if !called { // the caller is a part of the broker
		method = "/" + flow.CallerOf(c.Context).Container + "/" + c.Operation.String()
	}
	ended := tracing.Call{
		Method: method, Batched: c.Batched, Operation: c.Operation.String(), Container: flow.CallerOf(c.Context).Container,
		Code: code, Metadata: c.Metadata, Started: started, Ended: finished,
	}
	if c.profile != nil {
		ended.Profile = c.profile.Name()
		if a := c.profile.Assessment(c.Operation); a != nil {
			ended.Algorithm = a.Algorithm
		}
	}
	return h.Tracer.Record(c.Context, &ended)
}
