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

// KeySource is the key of a request of any generation: the id of a key, or the key itself.
type KeySource struct {
	// Field is the path of the source in the request.
	Field string
	// ByID is whether ID names the key. ByValue is whether the key is in Raw. Both are
	// false if the source is empty.
	ByID, ByValue bool
	ID            string
	Raw           []byte
}

// check reports what is wrong with the source, whatever the profile says. largest is the
// largest size in bytes of a key in a request.
func (k KeySource) check(op profile.Operation, largest int) error {
	switch {
	case k.ByID:
		if !profile.ValidKeyID(k.ID) {
			return requests.Invalid(op, k.Field+".keyId", "is not the id of a key, expected 1 to %d bytes of printable ASCII without spaces; found %d bytes", profile.MaxKeyIDLength, len(k.ID))
		}
		return nil
	case k.ByValue:
		return requests.CheckPartSize(op, k.Field, ".rawKey", len(k.Raw), largest)
	default:
		return requests.Invalid(op, k.Field, "is empty, expected keyId or rawKey")
	}
}

// Forget overwrites a key that came with the request.
func (k KeySource) Forget() { clear(k.Raw) }

// allowRaw refuses a key that comes with the request if the profile lists keys of the
// broker.
func (k KeySource) allowRaw(op profile.Operation, name string, policy *profile.KeyPolicy) error {
	if policy.ByReference() {
		return requests.Refused(codes.InvalidArgument, op, name, "%s.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them", k.Field)
	}
	return nil
}

// key returns the key whose id the source has, if the profile lists it.
func (h *Handlers) key(c *Call, name string, policy *profile.KeyPolicy, source KeySource) (*keys.Key, error) {
	id := source.ID
	if policy.ByReference() && !policy.Allows(id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile does not list the key %q in KeyIds", id)
	}
	// This check comes before the next one, which advises to list the key. That would not
	// help if the keys are in a key manager.
	if err := checkManager(c, name, policy); err != nil {
		return nil, err
	}
	if !policy.Allows(id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile lists no keys of the broker, so requests bring their own; to use the key %q, add it to %s.KeyIds", id, profile.Section(c.Operation.String()))
	}
	if h.Keys == nil {
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be found, because this broker was given no keys; start it with --keys-dir", id)
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
		return nil, requests.Refused(codes.DeadlineExceeded, c.Operation, name, "the key %q was not found before the deadline of the call", id)
	case ctx.Err() != nil:
		return nil, requests.Refused(codes.Canceled, c.Operation, name, "the call was canceled before it found the key %q", id)
	case errors.Is(err, keys.ErrUnavailable):
		return nil, requests.Refused(codes.Unavailable, c.Operation, name, "the keys cannot be reached; the broker's log says why")
	default:
		return nil, h.internal(c, name, "a key could not be found", err)
	}
	if pin, pinned := policy.Pin(id); pinned {
		if found, ok := key.SPKISHA256(); !ok || found != pin {
			return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q is not the key that the profile pins by SPKISHA256", id)
		}
	}
	return key, nil
}

// checkManager refuses a profile whose keys are in an external key manager. A key of the
// broker may have the same id by chance, but is not the key that the profile means.
func checkManager(c *Call, name string, policy *profile.KeyPolicy) error {
	if client, external := policy.Manager(); external {
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile takes keys from the external key manager %q (KMS.Client), which this broker has no access to", client)
	}
	return nil
}

// engineError returns the error for the client that an error of package engine becomes.
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

// internal logs an error that the client did not cause, and returns the error for the
// client.
func (h *Handlers) internal(c *Call, name, message string, err error) error {
	h.logger.LogAttrs(c.Context, slog.LevelError, message,
		slog.String("operation", c.Operation.String()), slog.String("profile", name), slog.Any("error", err))
	return requests.Refused(codes.Internal, c.Operation, name, "failed because of an error inside the broker; the broker's log has it")
}
