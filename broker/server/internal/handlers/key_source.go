// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// KeySource is the key of a request, whatever its generation: by its id or by
// itself.
type KeySource struct {
	// Field is the path of the source in the request.
	Field string
	// ByID is whether the key is named by id, ByValue whether it is in raw. A
	// source without a key has neither.
	ByID, ByValue bool
	ID            string
	Raw           []byte
}

// check judges what can be judged without a profile. largest is the size in
// bytes that a key may have that comes with the request.
func (k KeySource) check(op profile.Operation, largest int) error {
	switch {
	case k.ByID:
		if !profile.ValidKeyID(k.ID) {
			return requests.Invalid(op, k.Field+".keyId", "is no id of a key, expected 1 to %d bytes of printable ASCII without spaces; found %d bytes", profile.MaxKeyIDLength, len(k.ID))
		}
		return nil
	case k.ByValue:
		return requests.CheckPartSize(op, k.Field, ".rawKey", len(k.Raw), largest)
	default:
		return requests.Invalid(op, k.Field, "is empty, expected keyId or rawKey")
	}
}

// Forget overwrites a key that came with the request, once it was used.
func (k KeySource) Forget() { clear(k.Raw) }

// allowRaw refuses a key that comes with the request where the profile lists keys
// of the broker.
func (k KeySource) allowRaw(op profile.Operation, name string, policy *profile.KeyPolicy) error {
	if policy.ByReference() {
		return requests.Refused(codes.InvalidArgument, op, name, "%s.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them", k.Field)
	}
	return nil
}

// key finds a key by its id, if the profile lists it.
func (h *Handlers) key(c *Call, name string, policy *profile.KeyPolicy, source KeySource) (*keys.Key, error) {
	id := source.ID
	if policy.ByReference() && !policy.Allows(id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile does not list the key %q in KeyIds", id)
	}
	// To list keys would not help where they are with a key manager.
	if err := checkManager(c, name, policy); err != nil {
		return nil, err
	}
	if !policy.Allows(id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile lists no key of the broker, so that a request brings its own; for the key %q, add it to %s.KeyIds", id, profile.Section(c.Operation.String()))
	}
	if h.Keys == nil {
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be found, since this broker was given no keys; start it with --keys-dir", id)
	}
	ctx := c.Context
	if !c.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.Deadline)
		defer cancel()
	}
	key, err := h.Keys.Key(ctx, id)
	switch {
	case err == nil:
	case errors.Is(err, keys.ErrNotFound):
		return nil, requests.Refused(codes.NotFound, c.Operation, name, "there is no key %q", id)
	case errors.Is(err, keys.ErrUnusable):
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be used; the broker's log says why", id)
	case ctx.Err() != nil && flow.IsPast(ctx):
		return nil, requests.Refused(codes.DeadlineExceeded, c.Operation, name, "the key %q was not there within the time that the call has", id)
	case ctx.Err() != nil:
		return nil, requests.Refused(codes.Canceled, c.Operation, name, "the caller gave the call up before the key %q was there", id)
	case errors.Is(err, keys.ErrUnavailable):
		return nil, requests.Refused(codes.Unavailable, c.Operation, name, "the keys cannot be reached; the broker's log says why")
	default:
		return nil, h.internal(c, name, "a key could not be found", err)
	}
	if pin, pinned := policy.Pin(id); pinned {
		if found, ok := key.SPKISHA256(); !ok || found != pin {
			return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q is another one than the profile pins by SPKISHA256", id)
		}
	}
	return key, nil
}

// checkManager refuses keys of an external key manager: another key that happens
// to have the same id here is not the one that the profile means.
func checkManager(c *Call, name string, policy *profile.KeyPolicy) error {
	if client, external := policy.Manager(); external {
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile takes keys from the external key manager %q (KMS.Client), which this broker has no access to", client)
	}
	return nil
}

// engineError turns an error of the engine into one of the wire.
func (h *Handlers) engineError(c *Call, name string, err error) error {
	var input *engine.InputError
	var precondition *engine.PreconditionError
	switch {
	case errors.As(err, &input):
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "%s", input)
	case errors.As(err, &precondition):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "%s", precondition)
	default:
		return h.internal(c, name, "an operation failed", err)
	}
}

// internal logs why a request failed that nothing was wrong with.
func (h *Handlers) internal(c *Call, name, message string, err error) error {
	h.logger.LogAttrs(c.Context, slog.LevelError, message,
		slog.String("operation", c.Operation.String()), slog.String("profile", name), slog.Any("error", err))
	return requests.Refused(codes.Internal, c.Operation, name, "failed for a reason inside the broker, whose log has it")
}
