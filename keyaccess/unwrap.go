// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// sealed is a wrapped data key with the policy that the request has for it.
type sealed struct {
	*release
	*kas.KeyAccess
	body     string
	parsed   tdfpolicy.Policy
	readable bool // parsed is the policy
}

// asked returns the object that the authorizer decides about if a key unwraps the data key.
func (o *sealed) asked(keyID string) tdfpolicy.Object {
	return tdfpolicy.Object{Policy: o.parsed, KeyID: keyID, KeyType: o.GetKeyType(), Origin: o.origin}
}

// dataKey returns the data key for the caller, or the text of a failure.
func (o *sealed) dataKey(ctx context.Context) (dataKey []byte, text string) {
	if text := o.unsupported(o.KeyAccess); text != "" {
		return nil, textUnsupported + text
	}
	dataKey, keyID, err := o.unwrap(ctx)
	switch {
	case err != nil && (keys.Transient(err) || ctx.Err() != nil):
		return nil, textUnavailable + "a key manager of this service does not answer"
	case err != nil || !o.readable:
		clear(dataKey)
		return nil, textBadRequest
	}
	// Only now is the policy that which the creator of the file has chosen.
	if err := o.Authorizer.Authorize(ctx, o.who, o.asked(keyID)); err != nil {
		clear(dataKey)
		o.Logger.Info("access to a data key denied", "issuer", o.who.Issuer, "subject", o.who.Subject, "policy", fmt.Sprintf("%.80q", o.parsed.ID), "reason", err.Error())
		return nil, textForbidden
	}
	return dataKey, ""
}

// dataKeySize is the size of the data keys of OpenTDF in bytes: AES-256.
const dataKeySize = 32

// errInvalid is the error of all failures that depend on a data key or a private key.
var errInvalid = errors.New("no key unwraps a data key that the policy is bound to")

// unwrap returns the data key that the policy is bound to, and the id of the key that has unwrapped it. The error wraps
// [keys.ErrUnavailable] or [keys.ErrThrottled] if a key manager was needed and did not answer, whatever the other keys said.
func (o *sealed) unwrap(ctx context.Context) (dataKey []byte, keyID string, err error) {
	err = errInvalid
	found := o.ring.For(o.GetKid(), wrapping.Type(o.GetKeyType()))
	if len(found) == 0 {
		_, err = o.bound(nil, err)
		return nil, "", err
	}
	for _, key := range found {
		dataKey, failed := o.open(ctx, key)
		if failed == nil {
			return dataKey, key.ID, nil
		}
		if keys.Transient(failed) {
			err = failed
		}
	}
	return nil, "", err
}

// open returns the data key that a key unwraps.
func (o *sealed) open(ctx context.Context, key keyring.Named) ([]byte, error) {
	unwrap := func(ctx context.Context) ([]byte, error) {
		dataKey, err := key.Key.Unwrap(ctx, wrapping.Wrapped{Type: wrapping.Type(o.GetKeyType()), Key: o.GetWrappedKey(), Ephemeral: o.GetEphemeralPublicKey()})
		return o.bound(dataKey, err)
	}
	managed, remote := key.Key.(wrapping.Managed)
	if !remote {
		return unwrap(ctx)
	}
	unwrap = o.managed(key.ID, unwrap)
	revision, generation := o.Authorizer.Revision(), o.Providers() // read before the decision, which may already use a newer version
	// The cache is only for callers to whom the sent policy permits the data key. A data key in the cache was bound to that policy.
	if o.DataKeys == nil || !o.readable || !o.Authorizer.Permits(ctx, o.who, o.asked(key.ID)) {
		return unwrap(ctx)
	}
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	id := datakeycache.NewID([]byte(o.who.Issuer), []byte(o.who.Subject), number(revision), number(generation), managed.Identity(),
		[]byte(key.ID), []byte(o.GetKeyType()), []byte(o.body), []byte(o.GetPolicyBinding().GetHash()), o.GetWrappedKey(), []byte(o.GetEphemeralPublicKey()))
	return o.DataKeys.Get(ctx, id, unwrap)
}

// managed asks a key manager to unwrap, and logs why that failed. It recovers panics, because the cache calls it in a goroutine of its
// own.
func (o *sealed) managed(keyID string, unwrap datakeycache.Unwrap) datakeycache.Unwrap {
	return func(ctx context.Context) (dataKey []byte, err error) {
		defer func() {
			if recovered := recover(); recovered != nil {
				cause, stack := defect.Describe(recovered)
				o.Logger.Error("a data key was not unwrapped because of a defect; other requests are not affected", "key", keyID, "cause", cause, "stack", stack)
				dataKey, err = nil, errInvalid
			}
		}()
		dataKey, err = unwrap(ctx)
		if err != nil && !errors.Is(err, errInvalid) {
			o.troubles.Do(func() {
				o.Logger.Warn("a key manager has not unwrapped a data key; more such failures within ten seconds are not logged", "key", keyID, "error", err)
			})
		}
		return dataKey, err
	}
}

// bound returns a data key that was unwrapped, if the policy is bound to it. The binding is checked whatever happened before, so that
// all failures take the same path.
func (o *sealed) bound(dataKey []byte, err error) ([]byte, error) {
	unwrapped := err == nil && len(dataKey) == dataKeySize
	if !unwrapped {
		clear(dataKey)
		dataKey = make([]byte, dataKeySize)
		_, _ = rand.Read(dataKey) // never fails
	}
	bound := wrapping.Binds(dataKey, o.body, o.GetPolicyBinding().GetHash())
	if unwrapped && bound {
		return dataKey, nil
	}
	clear(dataKey)
	if err != nil && (keys.Transient(err) || errors.Is(err, keys.ErrDenied) || errors.Is(err, keys.ErrUnusable) || errors.Is(err, keys.ErrNotFound)) {
		return nil, err
	}
	return nil, errInvalid
}
