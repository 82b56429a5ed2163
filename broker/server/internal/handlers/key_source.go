// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// KeySource is the key of a request of any generation: the id of a key, or the key itself.
type KeySource struct {
	// Field is the path of the source in the request.
	Field string
	// ByID reports whether ID names the key. ByValue is whether the key is in Raw. Both are
	// false if the source is empty.
	ByID, ByValue bool
	ID            string
	Raw           []byte
}

// check returns what is wrong with the source under any profile. largest is the largest size in
// bytes of a key in a request.
func (k KeySource) check(op profile.Operation, largest int) error {
	switch {
	case k.ByID:
		return k.checkName(op)
	case k.ByValue:
		return requests.CheckPartSize(op, k.Field, ".rawKey", len(k.Raw), largest)
	default:
		return requests.Invalid(op, k.Field, "is empty, expected keyId or rawKey")
	}
}

// checkName returns what is wrong with the id of a key, or with its version.
func (k KeySource) checkName(op profile.Operation) error {
	name := k.name()
	if err := checkKeyID(op, k.Field, ".keyId", name.ID); err != nil || name.Version == "" {
		return err
	}
	if !keyrules.ValidID(name.Version) {
		return requests.Invalid(op, k.Field+".keyId", "has no version of a key after #, expected 1 to %d bytes of printable ASCII without spaces; found %d bytes", keyrules.MaxIDLength, len(name.Version))
	}
	if op.Row().Newest {
		return requests.Invalid(op, k.Field+".keyId", "names version %s of a key, expected only the id: new data is protected with the newest version", name.Version)
	}
	return nil
}

// checkKeyID refuses the id of a key that no key can have. The name of its field has two parts,
// which are joined only for an error.
func checkKeyID(op profile.Operation, field, part, id string) error {
	if !keyrules.ValidID(id) {
		return requests.Invalid(op, field+part, "is not the id of a key, expected 1 to %d bytes of printable ASCII without spaces; found %d bytes", keyrules.MaxIDLength, len(id))
	}
	return nil
}

// name returns the name of the key. Ids of key providers may have a version:
// <provider>/<id>#<version>.
func (k KeySource) name() keys.Name {
	if provider, _ := keys.SplitID(k.ID); provider != "" {
		if i := strings.LastIndexByte(k.ID, '#'); i >= 0 && i+1 < len(k.ID) {
			return keys.Name{ID: k.ID[:i], Version: k.ID[i+1:]}
		}
	}
	return keys.Name{ID: k.ID}
}

// Forget overwrites a key that came with the request.
func (k KeySource) Forget() { clear(k.Raw) }

// allowRaw refuses a key that comes with the request if the profile lists keys of the
// broker.
func (k KeySource) allowRaw(op profile.Operation, name string, policy *keyrules.Policy) error {
	if policy.ByReference() {
		return requests.Refused(codes.InvalidArgument, op, name, "%s.rawKey is not empty, expected keyId: the profile lists the keys to use in KeyIds, and the broker has them", k.Field)
	}
	return nil
}

// key returns the key whose id the source has, if the profile lists it.
func (h *Handlers) key(c *Call, name string, policy *keyrules.Policy, source KeySource) (*keys.Key, error) {
	key, err := h.listedKey(c, name, policy, source.name())
	if c.key == nil {
		c.key = key
	}
	return key, err
}

// listedKey returns a key, if the profile lists it. It does not change the call.
func (h *Handlers) listedKey(c *Call, name string, policy *keyrules.Policy, wanted keys.Name) (*keys.Key, error) {
	id := wanted.ID
	if policy.ByReference() && !policy.Allows(id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile does not list the key %q in KeyIds", id)
	}
	provider, err := h.provider(c, name, policy, id)
	if err != nil {
		return nil, err
	}
	wanted.Use = keys.Use{Profile: name, Operation: c.Operation}
	key, err := find(c, provider, wanted)
	if errors.Is(err, keys.ErrNotFound) && wanted.Version != "" {
		return nil, requests.Refused(codes.NotFound, c.Operation, name, "there is no key %q, or it has no version %q", id, wanted.Version)
	}
	if err != nil {
		return nil, h.keyError(c, name, id, err)
	}
	if pin, pinned := policy.Pin(id); pinned {
		if found, ok := key.SPKISHA256(); !ok || found != pin {
			return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q is not the key that the profile pins by SPKISHA256", id)
		}
	}
	if _, external := policy.Manager(); external {
		// Not every id of that provider can have a version, so the broker might refuse an id from
		// one of its own replies.
		key = key.WithVersion("")
	}
	return key, nil
}

// provider returns the provider of the profile's keys.
func (h *Handlers) provider(c *Call, name string, policy *keyrules.Policy, id string) (keys.Provider, error) {
	// This check comes before the next one. The error of the next one advises to list the key,
	// which would not help if the keys are in a key manager.
	if _, external := policy.Manager(); external {
		return h.manager(c, name, policy, id)
	}
	if !policy.Allows(id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile lists no keys of the broker, so requests bring their own; to use the key %q, add it to %s.KeyIds", id, profile.Section(c.Operation.String()))
	}
	if h.Keys == nil {
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be found, because this broker was given no keys; start it with --keys-dir", id)
	}
	return h.Keys, nil
}

// manager returns the external key manager that the profile names.
func (h *Handlers) manager(c *Call, name string, policy *keyrules.Policy, id string) (keys.Provider, error) {
	client, _ := policy.Manager()
	file, cached, ok := policy.SettingsFile()
	switch {
	case !ok:
		return nil, checkManager(c, name, policy)
	case h.Managers == nil:
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile takes keys from the external key manager %q (KMS.Client), which this broker has no access to; start it with --kms-dir", client)
	}
	manager, err := h.Managers(file, cached)
	if err != nil {
		return nil, h.keyError(c, name, id, err)
	}
	return manager, nil
}

// find returns a key, or ErrWaits if the call must not wait for the key or its operations.
func find(c *Call, provider keys.Provider, name keys.Name) (*keys.Key, error) {
	prompt, ok := provider.(keys.Prompt)
	if !ok {
		return provider.Key(c.untilDeadline(), name)
	}
	key, err := prompt.KeyNow(name)
	switch {
	case err == nil && key.Remote(), errors.Is(err, keys.ErrWouldWait):
		if !c.MayWait {
			return nil, ErrWaits
		}
	}
	if errors.Is(err, keys.ErrWouldWait) {
		return prompt.Key(c.untilDeadline(), name)
	}
	return key, err
}

// keyError converts an error of a provider, or of an operation of a key, to the error for the
// client.
func (h *Handlers) keyError(c *Call, name, id string, err error) error {
	h.keyFailed(c, name, id, err)
	ctx := c.untilDeadline()
	var missing *keys.NoProviderError
	switch {
	case errors.Is(err, ErrWaits):
		return err
	case errors.As(err, &missing) && missing.Provider == "":
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be found, because this broker was given no keys; start it with --keys-dir", id)
	case errors.As(err, &missing):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be found, because this broker has no key provider %q and no key gateway; a pod that was created before its namespace had the first key of a key provider has to be created again", id, missing.Provider)
	case errors.Is(err, keys.ErrNotFound):
		return requests.Refused(codes.NotFound, c.Operation, name, "there is no key %q", id)
	case errors.Is(err, keys.ErrDenied):
		return requests.Refused(codes.PermissionDenied, c.Operation, name, "the key manager denies the use of the key %q; the broker's log says why", id)
	case errors.Is(err, keys.ErrUnusable):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q cannot be used; the broker's log says why", id)
	case ctx.Err() != nil && flow.IsPast(ctx):
		return requests.Refused(codes.DeadlineExceeded, c.Operation, name, "the key %q was not found before the deadline of the call", id)
	case ctx.Err() != nil:
		return requests.Refused(codes.Canceled, c.Operation, name, "the call was canceled before it found the key %q", id)
	case errors.Is(err, keys.ErrThrottled):
		return requests.Refused(codes.Unavailable, c.Operation, name, "the key manager of the key %q has too many requests; try again later", id)
	case errors.Is(err, keys.ErrUnavailable):
		return requests.Refused(codes.Unavailable, c.Operation, name, "the keys cannot be reached; the broker's log says why")
	default:
		return h.internal(c, name, "a key could not be found", err)
	}
}

// contextOf returns the context for the operations of a key. A key in memory does not need the
// deadline, and the timer of a deadline costs more than a small encryption.
func (c *Call) contextOf(key *keys.Key) context.Context {
	if key.Remote() {
		return c.untilDeadline()
	}
	return c.Context
}

// checkManager refuses a profile whose keys are in an external key manager. A key of the broker
// may have the same id by chance, but it is not the key of the profile.
func checkManager(c *Call, name string, policy *keyrules.Policy) error {
	if client, external := policy.Manager(); external {
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "the profile takes keys from the external key manager %q (KMS.Client), which this broker has no access to: it takes keys only from openbao, with settings in a file that KMS.Config names, for EncryptData and DecryptData", client)
	}
	return nil
}

// engineError converts an error of package engine to the error for the client.
func (h *Handlers) engineError(c *Call, name string, err error) error {
	var input *engine.InputError
	var precondition *engine.PreconditionError
	switch {
	case errors.As(err, &input):
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "%s", input)
	case errors.As(err, &precondition):
		return requests.Refused(codes.FailedPrecondition, c.Operation, name, "%s", precondition)
	case isKeyError(err):
		return h.keyError(c, name, c.use.Keys[0].ID, err)
	default:
		return h.internal(c, name, "an operation failed", err)
	}
}

// isKeyError reports whether an operation failed in the key manager.
func isKeyError(err error) bool {
	return keys.Transient(err) || errors.Is(err, keys.ErrNotFound) || errors.Is(err, keys.ErrDenied) || errors.Is(err, keys.ErrUnusable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// internal logs an error that the client did not cause, and returns the error for the
// client.
func (h *Handlers) internal(c *Call, name, message string, err error) error {
	h.logger.LogAttrs(c.Context, slog.LevelError, message,
		slog.String("operation", c.Operation.String()), slog.String("profile", name), slog.Any("error", err))
	return requests.Refused(codes.Internal, c.Operation, name, "failed because of an error inside the broker; the broker's log has the details")
}
