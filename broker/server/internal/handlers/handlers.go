// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/served"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// Handlers serves the operations for all generations of the wire contract.
type Handlers struct {
	logger  *slog.Logger
	Metrics *telemetry.Metrics
	Tracer  *tracing.Tracer // nil for no spans
	Keys    keys.Provider   // nil for no keys by id
	// Managers returns the key manager that a profile names by the file of its settings. It is
	// nil if the broker has no such files. cached is whether keys may be kept.
	Managers func(file string, cached bool) (keys.Provider, error)
	keyLog   keyLog
	// InTurn runs a job of a call in a worker, when it is the caller's turn. It returns once the
	// job has ended.
	InTurn func(ctx context.Context, job func())
	// Audit writes the records of calls. If it is nil, calls whose record is required are refused.
	Audit   *audit.Log
	sampled atomic.Uint64 // calls of profiles that record a sample
	// DataKeys caches data keys that key managers have unwrapped.
	DataKeys *datakeycache.Cache
	// Sessions has the encrypted sessions.
	Sessions *session.Store
	// development admits one measurement at a time. It is nil if the development service
	// is off.
	development chan struct{}

	// Served is the set of profiles in use, nil before the first one.
	Served atomic.Pointer[served.Set]
}

// NewHandlers returns handlers that have no profiles yet.
func NewHandlers(logger *slog.Logger, metrics *telemetry.Metrics) *Handlers {
	h := &Handlers{logger: logger, Metrics: metrics, DataKeys: datakeycache.New(func(err error) {
		logger.Warn("data keys of key managers are kept in memory that is not locked, so they may be swapped or be in a core dump", "error", err)
	})}
	h.Sessions = session.NewStore(func(err error) {
		logger.Warn("keys of sessions are kept in memory that is not locked, so they may be swapped or be in a core dump", "error", err)
	})
	metrics.ServeDataKeys(h.DataKeys.Stats)
	metrics.ServeSessions(h.Sessions.Stats)
	return h
}

// Use serves a set of profiles with its revision from now on. Requests that have begun finish with
// the set that they began with.
func (h *Handlers) Use(set *profile.Set, revision int64) {
	next := served.New(set, revision, h.Metrics.Profiles(set))
	h.Served.Store(next)
	h.DataKeys.Forget() // because a profile may no longer allow the use of the data keys
	h.Sessions.Keep(next.SessionPolicy)
}

// IsServing reports whether Use has been called.
func (h *Handlers) IsServing() bool { return h.Served.Load() != nil }

// Call is one request of any generation of the wire contract.
type Call struct {
	Operation profile.Operation
	Context   context.Context
	// Deadline is when the call has to end, in addition to the deadline of Context. It is
	// zero for no deadline.
	Deadline time.Time
	// MayWait reports whether the call has its own goroutine, so that nothing else waits while it
	// waits for a key manager. Without it, a call that has to wait ends with ErrWaits, and is
	// called again.
	MayWait bool
	// Batched reports whether a stream of Exchange carries the call.
	Batched bool
	// limited is Context with Deadline, nil before untilDeadline. end frees it.
	limited context.Context //nolint:containedctx // a call has its context for as long as it lasts
	end     context.CancelFunc
	// Counters is set once the profile is known. Warning is set if the profile is
	// deprecated.
	Counters *telemetry.Counters
	Warning  []byte
	// Metadata is the metadata of the request as [requests.Retag] returned it, and profile
	// is the profile of the call. Spans have both.
	Metadata []byte
	profile  *profile.Compiled
	// set is the digest of the set that has the profile, and revision its revision.
	set      string
	revision int64
	// use is the use of the profile by the call. It counts if the call succeeds.
	use profile.Use
	// KeyID is the id of the key that encrypted, with its version if it has one.
	KeyID string
	// keyVersion is the version of the key that decrypts, empty if it has none.
	keyVersion string
	// key is the first key of the broker that the call uses, or nil.
	key *keys.Key
	// RequestSize, ReplySize and StreamedSize are sizes in bytes for metrics and the audit
	// record: of the request, of the reply, and of the replies that a stream has sent before
	// it. ReplySize counts if the call succeeds.
	RequestSize, ReplySize, StreamedSize int
	// recorded reports whether the call has its audit record.
	recorded bool
	// PrivateKey is the key of the issuer in a request for a certificate, nil if the
	// request does not have it.
	PrivateKey []byte
	// secrets are parts of the reply that Overwrite overwrites.
	secrets [][]byte
	// undo ends what the call has begun, if its reply does not leave the broker for want of an audit record. It is nil if
	// there is nothing to end.
	undo func()
}

// overwriteLater adds a secret to the secrets that [Call.Overwrite] overwrites.
func (c *Call) overwriteLater(secret []byte) { c.secrets = append(c.secrets, secret) }

// Overwrite overwrites the secrets of the call. It is called after the reply was encoded.
func (c *Call) Overwrite() {
	for _, secret := range c.secrets {
		clear(secret)
	}
	c.secrets = nil
}

// ErrWaits is the error of a call that has to wait for a key manager and must not.
var ErrWaits = errors.New("handlers: the call has to wait for a key manager")

// untilDeadline returns the context of the call with its Deadline.
func (c *Call) untilDeadline() context.Context {
	if c.Deadline.IsZero() {
		return c.Context
	}
	if c.limited == nil {
		c.limited, c.end = context.WithDeadline(c.Context, c.Deadline)
	}
	return c.limited
}

// Free releases the resources of the call.
func (c *Call) Free() {
	if c.end != nil {
		c.end()
		c.limited, c.end = nil, nil
	}
}

// Ended counts a call that has ended, and makes its span if it is sampled.
func (h *Handlers) Ended(c *Call, code codes.Code, started, ended time.Time) {
	c.Free()
	traceID := ""
	if h.Tracer != nil {
		traceID = h.trace(c, code, started, ended)
	}
	h.Metrics.End(c.Operation, c.Counters, code, ended.Sub(started), traceID)
	replied := c.StreamedSize
	if code == codes.OK {
		replied += c.ReplySize
	}
	h.Metrics.Transferred(c.Operation, c.RequestSize, replied)
	if code == codes.OK {
		c.Counters.Used(&c.use, ended)
	} else {
		h.Metrics.Failed(c.Operation, code, flow.CallerOf(c.Context).Container)
	}
}

// Panicked logs a panic of a request without values of the request, and returns the error for
// the client. what names the request.
func (h *Handlers) Panicked(what string, cause any) error {
	text, stack := defect.Describe(cause)
	h.logger.LogAttrs(context.Background(), slog.LevelError, "a request failed because of a defect in the broker; other requests are not affected",
		slog.String("operation", what), slog.String("cause", text), slog.String("stack", stack))
	return status.Errorf(codes.Internal, "%s: failed because of a defect in the broker, whose log has the details", what)
}
