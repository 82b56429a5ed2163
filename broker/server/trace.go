// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// WithTracer makes spans of the calls that the tracer samples. Without it, or with
// nil, there are none.
func WithTracer(tracer *tracing.Tracer) Option {
	return func(s *Server) { s.tracer = tracer }
}

// trace makes a span of a call that has ended, if it is sampled. Who calls it has
// looked whether there is a tracer: calls cost nothing without one.
func (s *Server) trace(c *call, batched bool, code codes.Code, started time.Time) {
	defer func() {
		if cause := recover(); cause != nil {
			_ = s.panicked("the span of "+c.op.String(), cause) // it is logged; the call has its reply already
		}
	}()
	method, _ := grpc.Method(c.ctx)
	ended := tracing.Call{
		Method: method, Batched: batched, Operation: c.op.String(), Container: flow.CallerOf(c.ctx).Container,
		Code: code, Metadata: c.metadata, Started: started, Ended: time.Now(),
	}
	if c.profile != nil {
		ended.Profile, ended.Algorithm = c.profile.Name(), algorithmOf(c.profile, c.op)
	}
	s.tracer.Record(c.ctx, &ended)
}

// algorithmOf names the algorithm as replies do, empty where the profile does not
// offer the operation.
func algorithmOf(p *profile.Compiled, op engine.Operation) string {
	for _, a := range p.Assessments() {
		if a.Operation == op.String() {
			return a.Algorithm
		}
	}
	return ""
}
