// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// Record writes the audit record of a call that ends with err, if the call has to have one. It is
// called before the client gets the reply. It returns err, or the error that the client gets
// instead of the reply if a required record cannot be written.
func (h *Handlers) Record(c *Call, err error) error {
	policy := h.audits(c)
	if policy.Level == profile.AuditNone || c.recorded || !h.records(c, policy.Level, err != nil) {
		return err
	}
	c.recorded = true
	r := h.recordOf(c)
	s := status.Convert(err)
	if r.Code = codeName(s.Code()); err != nil {
		r.Reason = s.Message()
	}
	if failed := h.write(c, policy, &r); failed != nil {
		if c.undo != nil {
			c.undo()
		}
		return failed
	}
	return err
}

// RecordBegin writes a record of a stream that begins and that uses a key. Parts of its output
// leave the broker before it ends.
func (h *Handlers) RecordBegin(c *Call) error {
	policy := h.audits(c)
	if policy.Level < profile.AuditSensitive {
		return nil
	}
	r := h.recordOf(c)
	r.Began = true
	return h.write(c, policy, &r)
}

// audits returns the audit policy for a call. A call that names no served profile is recorded if
// any profile records calls.
func (h *Handlers) audits(c *Call) profile.AuditPolicy {
	if c.profile != nil {
		return c.profile.Audit()
	}
	if serving := h.Served.Load(); serving != nil && serving.Audits {
		return profile.AuditPolicy{Level: profile.AuditSampled}
	}
	return profile.AuditPolicy{}
}

// records reports whether the audit level of a profile demands a record of a call. Failed calls are
// always recorded.
func (h *Handlers) records(c *Call, level profile.AuditLevel, failed bool) bool {
	switch {
	case failed, level == profile.AuditAll:
		return true
	case c.profile == nil:
		return false
	case level == profile.AuditSensitive:
		return c.use.Keys[0].Algorithm != "" || c.Operation.Row().Agrees
	default:
		return h.sampled.Add(1)%profile.AuditSample == 1
	}
}

func (h *Handlers) recordOf(c *Call) audit.Record {
	r := audit.Record{
		Time: time.Now(), Use: c.use, RequestSize: c.RequestSize, ReplySize: c.StreamedSize + c.ReplySize, TraceID: tracing.TraceIDOf(c.Context, c.Metadata, c.Batched),
	}
	r.Use.Operation, r.Use.Caller = c.Operation, flow.CallerOf(c.Context)
	if c.profile != nil {
		r.Profile, r.Digest, r.Revision, r.Assessment = c.profile.Name(), c.set, c.revision, c.profile.Assessment(c.Operation)
	}
	if c.key != nil {
		r.KeyVersion = c.key.Version()
		if pin, ok := c.key.SPKISHA256(); ok {
			r.Pin = pin[:]
		}
	}
	return r
}

// write writes a record. It waits, and returns an error for the client, only if the profile
// requires the record.
func (h *Handlers) write(c *Call, policy profile.AuditPolicy, r *audit.Record) error {
	switch {
	case h.Audit == nil:
		return nil // profile has refused the call if the record is required
	case !policy.Required:
		h.Audit.Add(r)
		return nil
	}
	if err := h.Audit.Write(c.untilDeadline(), r); err != nil {
		return requests.Refused(codes.Unavailable, c.Operation, c.profile.Name(), "the profile requires an audit record of each call, and the record was not written; the broker's log says why")
	}
	return nil
}

// codeName returns the name of a code as in gRPC's specification, such as PERMISSION_DENIED.
func codeName(code codes.Code) string {
	if int(code) < len(codeNames) {
		return codeNames[code]
	}
	return codeNames[codes.Unknown]
}

var codeNames = [...]string{
	codes.OK: "OK", codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}
