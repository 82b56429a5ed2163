// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// keySource is the key of a request, whatever its generation: by its id or by
// itself.
type keySource struct {
	// field is the path of the source in the request.
	field string
	// byID is whether the key is named by id, byValue whether it is in raw. A
	// source without a key has neither.
	byID, byValue bool
	id            string
	raw           []byte
}

// check judges what can be judged without a profile. largest is the size in
// bytes that a key may have that comes with the request.
func (k keySource) check(op engine.Operation, largest int) error {
	switch {
	case k.byID:
		if !profile.ValidKeyID(k.id) {
			return invalid(op, k.field+".keyId", "is no id of a key, expected 1 to %d bytes of printable ASCII without spaces; found %d bytes", profile.MaxKeyIDLength, len(k.id))
		}
		return nil
	case k.byValue:
		return checkPartSize(op, k.field, ".rawKey", len(k.raw), largest)
	default:
		return invalid(op, k.field, "is empty, expected keyId or rawKey")
	}
}

// forget overwrites a key that came with the request, once it was used.
func (k keySource) forget() { clear(k.raw) }

// allowRaw refuses a key that comes with the request where the profile lists keys
// of the broker.
func (k keySource) allowRaw(op engine.Operation, name string, policy *profile.KeyPolicy) error {
	if policy.ByReference() {
		return refused(codes.InvalidArgument, op, name, "%s.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them", k.field)
	}
	return nil
}

// key finds a key by its id, if the profile lists it.
func (s *Server) key(c *call, name string, policy *profile.KeyPolicy, source keySource) (*keys.Key, error) {
	id := source.id
	if policy.ByReference() && !policy.Allows(id) {
		return nil, refused(codes.PermissionDenied, c.op, name, "the profile does not list the key %q in KeyIds", id)
	}
	// To list keys would not help where they are with a key manager.
	if err := checkManager(c, name, policy); err != nil {
		return nil, err
	}
	if !policy.Allows(id) {
		return nil, refused(codes.PermissionDenied, c.op, name, "the profile lists no key of the broker, so that a request brings its own; for the key %q, add it to %s.KeyIds", id, profile.Section(c.op.String()))
	}
	if s.keys == nil {
		return nil, refused(codes.FailedPrecondition, c.op, name, "the key %q cannot be found, since this broker was given no keys; start it with --keys-dir", id)
	}
	ctx := c.ctx
	if !c.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.deadline)
		defer cancel()
	}
	key, err := s.keys.Key(ctx, id)
	switch {
	case err == nil:
	case errors.Is(err, keys.ErrNotFound):
		return nil, refused(codes.NotFound, c.op, name, "there is no key %q", id)
	case errors.Is(err, keys.ErrUnusable):
		return nil, refused(codes.FailedPrecondition, c.op, name, "the key %q cannot be used; the broker's log says why", id)
	case ctx.Err() != nil && flow.IsPast(ctx):
		return nil, refused(codes.DeadlineExceeded, c.op, name, "the key %q was not there within the time that the call has", id)
	case ctx.Err() != nil:
		return nil, refused(codes.Canceled, c.op, name, "the caller gave the call up before the key %q was there", id)
	case errors.Is(err, keys.ErrUnavailable):
		return nil, refused(codes.Unavailable, c.op, name, "the keys cannot be reached; the broker's log says why")
	default:
		return nil, s.internal(c, name, "a key could not be found", err)
	}
	if pin, pinned := policy.Pin(id); pinned {
		if found, ok := key.SPKISHA256(); !ok || found != pin {
			return nil, refused(codes.FailedPrecondition, c.op, name, "the key %q is another one than the profile pins by SPKISHA256", id)
		}
	}
	return key, nil
}

// checkManager refuses keys of an external key manager: another key that happens
// to have the same id here is not the one that the profile means.
func checkManager(c *call, name string, policy *profile.KeyPolicy) error {
	if client, external := policy.Manager(); external {
		return refused(codes.FailedPrecondition, c.op, name, "the profile takes keys from the external key manager %q (KMS.Client), which this broker has no access to", client)
	}
	return nil
}

// engineError turns an error of the engine into one of the wire.
func (s *Server) engineError(c *call, name string, err error) error {
	var input *engine.InputError
	var precondition *engine.PreconditionError
	switch {
	case errors.As(err, &input):
		return refused(codes.InvalidArgument, c.op, name, "%s", input)
	case errors.As(err, &precondition):
		return refused(codes.FailedPrecondition, c.op, name, "%s", precondition)
	default:
		return s.internal(c, name, "an operation failed", err)
	}
}

// internal logs why a request failed that nothing was wrong with.
func (s *Server) internal(c *call, name, message string, err error) error {
	s.logger.LogAttrs(c.ctx, slog.LevelError, message,
		slog.String("operation", c.op.String()), slog.String("profile", name), slog.Any("error", err))
	return refused(codes.Internal, c.op, name, "failed for a reason inside the broker, whose log has it")
}
