// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// WrappedKey is a wrapped key of a request with its context.
type WrappedKey struct {
	// Field is the path of the fields below in the request. It ends with a dot, or is empty.
	Field         string
	Blob, Context []byte
	// Turn reports whether unwrapping with a key in memory has to wait for a worker, because the
	// goroutine is not a worker.
	Turn bool
}

// GenerateDataKey serves GenerateDataKey. The data key is nil if the caller does not want it. It
// is overwritten when the reply is written.
func (h *Handlers) GenerateDataKey(c *Call, name, id string, context []byte, withoutKey bool) (dataKey, wrapped []byte, with algorithm.Wrapping, err error) {
	policy, err := h.dataKeys(c, name, context)
	if err != nil {
		return nil, nil, 0, err
	}
	dataKey, wrapped, with, err = h.newDataKey(c, name, policy, id, context, policy.KeySize())
	if err != nil {
		return nil, nil, 0, err
	}
	c.overwriteLater(dataKey)
	c.use.Keys[1] = profile.UsedKey{Algorithm: profile.DataKey, Bits: 8 * policy.KeySize()}
	if withoutKey {
		dataKey = nil
	}
	return dataKey, wrapped, with, nil
}

// newDataKey makes a data key of size bytes and wraps it. The caller overwrites it.
func (h *Handlers) newDataKey(c *Call, name string, policy *profile.DataKeyPolicy, id string, context []byte, size int) (dataKey, wrapped []byte, with algorithm.Wrapping, err error) {
	w, err := h.newWrapping(c, name, policy, id, context)
	if err != nil {
		return nil, nil, 0, err
	}
	dataKey = make([]byte, size)
	_, _ = rand.Read(dataKey) // it never returns an error
	if wrapped, err = w.wrap(dataKey); err != nil {
		clear(dataKey)
		return nil, nil, 0, err
	}
	return dataKey, wrapped, w.header.Algorithm, nil
}

// WrapKey serves WrapKey. It overwrites the data key.
func (h *Handlers) WrapKey(c *Call, name, id string, dataKey, context []byte) (wrapped []byte, with algorithm.Wrapping, err error) {
	defer clear(dataKey)
	if len(dataKey) < wrap.MinSize || len(dataKey) > wrap.MaxSize {
		return nil, 0, requests.Invalid(c.Operation, "dataKey", "has %d bytes, expected %d to %d", len(dataKey), wrap.MinSize, wrap.MaxSize)
	}
	policy, err := h.dataKeys(c, name, context)
	if err != nil {
		return nil, 0, err
	}
	w, err := h.newWrapping(c, name, policy, id, context)
	if err != nil {
		return nil, 0, err
	}
	wrapped, err = w.wrap(dataKey)
	return wrapped, w.header.Algorithm, err
}

// UnwrapKey serves UnwrapKey. The data key is overwritten when the reply is written.
func (h *Handlers) UnwrapKey(c *Call, name string, given WrappedKey) (dataKey []byte, with algorithm.Wrapping, err error) {
	policy, err := h.dataKeys(c, name, given.Context)
	if err != nil {
		return nil, 0, err
	}
	dataKey, w, err := h.unwrap(c, name, policy, given)
	if err != nil {
		return nil, 0, err
	}
	c.overwriteLater(dataKey)
	w.noteUse(0)
	w.noteRead()
	return dataKey, w.header.Algorithm, nil
}

// RewrapKey serves RewrapKey. id is the id of the new wrapping key, or empty for the old one.
// unchanged reports whether wrapped is the wrapped key of the request.
func (h *Handlers) RewrapKey(c *Call, name string, given WrappedKey, id string) (wrapped []byte, with algorithm.Wrapping, unchanged bool, err error) {
	policy, err := h.dataKeys(c, name, given.Context)
	if err != nil {
		return nil, 0, false, err
	}
	old, err := h.findWrapping(c, name, policy, given)
	if err != nil {
		return nil, 0, false, err
	}
	if id == "" {
		id = old.id
	}
	w, err := h.newWrapping(c, name, policy, id, given.Context)
	if err != nil {
		return nil, 0, false, err
	}
	// Find both keys before unwrapping. A call that has to wait for the new key is called again,
	// and should unwrap only once.
	dataKey, err := old.unwrap(given)
	if err != nil {
		return nil, 0, false, err
	}
	defer clear(dataKey)
	c.use.Keys[0], c.key = profile.UsedKey{Algorithm: old.header.Algorithm.String(), ID: old.id}, old.key
	w.noteUse(1)
	if w.id == old.id && w.header.KeyVersion == old.header.KeyVersion && w.header.Algorithm == old.header.Algorithm {
		return given.Blob, w.header.Algorithm, true, nil
	}
	wrapped, err = w.wrap(dataKey)
	return wrapped, w.header.Algorithm, false, err
}

// GetPublicKey serves GetPublicKey. It returns the SubjectPublicKeyInfo in DER and PEM, and the
// version of the key.
func (h *Handlers) GetPublicKey(c *Call, name, id string) (der []byte, text, version string, err error) {
	policy, err := offered(h, c, name, (*profile.Compiled).DataKeys)
	if err != nil {
		return nil, "", "", err
	}
	if err := checkKeyID(c.Operation, "", "keyId", id); err != nil {
		return nil, "", "", err
	}
	key, err := h.listedKey(c, name, policy.Keys(), keys.Name{ID: id})
	if err != nil {
		return nil, "", "", err
	}
	if key.Public() == nil {
		return nil, "", "", requests.Refused(codes.InvalidArgument, c.Operation, name, "the key %q is an AES key, expected a key pair", id)
	}
	c.use.Keys[0], c.key = engine.UsedKey(key.Public(), id), key
	if der, err = key.SPKI(); err != nil {
		return nil, "", "", h.internal(c, name, "a public key could not be encoded", err)
	}
	return der, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), key.Version(), nil
}

// dataKeys returns the policy of a request with one context.
func (h *Handlers) dataKeys(c *Call, name string, context []byte) (*profile.DataKeyPolicy, error) {
	policy, err := offered(h, c, name, (*profile.Compiled).DataKeys)
	if err != nil {
		return nil, err
	}
	return policy, checkContext(c, name, policy, "", context)
}

// checkContext refuses a context that is too large or that the profile does not allow, and a
// missing context that the profile requires. field is as in WrappedKey.
func checkContext(c *Call, name string, policy *profile.DataKeyPolicy, field string, context []byte) error {
	if err := requests.CheckPartSize(c.Operation, field, "context", len(context), requests.MaxContextSize); err != nil {
		return err
	}
	if problem := policy.ContextProblem(len(context) > 0); problem != "" {
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "%scontext %s", field, problem)
	}
	return nil
}

// wrapping is one use of a wrapping key in a call.
type wrapping struct {
	h       *Handlers
	call    *Call
	profile string
	set     string // the digest of the set that has the profile
	id      string // the id of the key in the profile
	key     *keys.Key
	header  blob.Header
	wrapped []byte // the wrapped key that the key has to unwrap, nil for a new data key
}

// standardProvider is the name of the default provider in wrapped keys. No other provider can
// have it.
const standardProvider = "-"

// newWrapping returns the wrapping of a new data key: by the newest version of the key, and by
// the first algorithm of the profile that the key supports.
func (h *Handlers) newWrapping(c *Call, name string, policy *profile.DataKeyPolicy, id string, context []byte) (*wrapping, error) {
	if err := checkKeyID(c.Operation, "", "keyId", id); err != nil {
		return nil, err
	}
	w := &wrapping{h: h, call: c, profile: name, id: id}
	if err := w.find(policy, ""); err != nil {
		return nil, err
	}
	has := w.key.Wrapper().Algorithms()
	with, found := policy.Wrapping(func(with algorithm.Wrapping) bool {
		return slices.Contains(has, with.String()) && (len(context) == 0 || with.BindsContext())
	})
	if !found {
		if with, unbound := policy.Wrapping(func(with algorithm.Wrapping) bool { return slices.Contains(has, with.String()) }); unbound {
			return nil, requests.Refused(codes.InvalidArgument, c.Operation, name, "context is not empty, expected none, because %s cannot bind a data key to a context", with)
		}
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q wraps with %s, expected a key for the WrapAlgs of the profile: %s", id, strings.Join(has, ", "), policy.Algorithms())
	}
	w.header = blob.Header{Algorithm: with, KeyVersion: w.key.Version(), ContextHash: blob.HashContext(context)}
	if w.header.Provider, w.header.KeyID = keys.SplitID(id); w.header.Provider == "" {
		w.header.Provider = standardProvider
	}
	if err := w.header.Check(); err != nil {
		return nil, h.internal(c, name, "a wrapped key could not be described", err)
	}
	w.noteUse(0)
	return w, nil
}

// find finds the key, if the profile lists it and it wraps.
func (w *wrapping) find(policy *profile.DataKeyPolicy, version string) error {
	key, err := w.h.listedKey(w.call, w.profile, policy.Keys(), keys.Name{ID: w.id, Version: version})
	if err != nil {
		return err
	}
	if key.Wrapper() == nil && key.Signs() && key.Remote() {
		return requests.Refused(codes.FailedPrecondition, w.call.Operation, w.profile, "the key %q is a key pair that stays in its key manager, which signs with it and wraps no data keys; expected an AES key", w.id)
	}
	if key.Wrapper() == nil {
		return requests.Refused(codes.FailedPrecondition, w.call.Operation, w.profile, "the key %q does not wrap data keys, expected an AES key, an RSA key from 2048 bits, or a key on P-256, P-384 or P-521", w.id)
	}
	w.key = key
	return nil
}

// noteUse records the key as the key number i of the use of the call.
func (w *wrapping) noteUse(i int) {
	used := profile.UsedKey{Algorithm: profile.AESKey, ID: w.id}
	if public := w.key.Public(); public != nil {
		used = engine.UsedKey(public, w.id)
	} else if cipher := w.key.Cipher(w.call.Context); cipher != nil {
		used.Bits = 8 * cipher.KeySize()
	}
	if i == 0 {
		w.call.key = w.key
	}
	use := &w.call.use
	use.Keys[i], use.Algorithm, use.GivenContext = used, w.header.Algorithm.String(), len(w.header.ContextHash) > 0
}

// noteRead counts a data key that was unwrapped for the caller.
func (w *wrapping) noteRead() { w.h.Metrics.ReadWith(w.id, w.header.KeyVersion) }

func (w *wrapping) wrap(dataKey []byte) ([]byte, error) {
	wrapped, err := w.key.Wrapper().Wrap(w.call.contextOf(w.key), w.header.Algorithm.String(), dataKey, w.header.Additional())
	if err != nil {
		return nil, w.failed("", err)
	}
	encoded, err := blob.Encode(w.header, wrapped)
	if err != nil {
		return nil, w.h.internal(w.call, w.profile, "a wrapped key could not be encoded", err)
	}
	return encoded, nil
}

// unwrap returns the data key of a wrapped key, and its wrapping. The caller overwrites the data
// key.
func (h *Handlers) unwrap(c *Call, name string, policy *profile.DataKeyPolicy, given WrappedKey) ([]byte, *wrapping, error) {
	w, err := h.findWrapping(c, name, policy, given)
	if err != nil {
		return nil, nil, err
	}
	dataKey, err := w.unwrap(given)
	if err != nil {
		return nil, nil, err
	}
	return dataKey, w, nil
}

// findWrapping returns the wrapping of a wrapped key, with its wrapping key. Like
// [wrapping.unwrap], it does not change the call, so several goroutines can call it for keys of
// one call.
func (h *Handlers) findWrapping(c *Call, name string, policy *profile.DataKeyPolicy, given WrappedKey) (*wrapping, error) {
	refuse := func(format string, args ...any) error {
		return requests.Refused(codes.InvalidArgument, c.Operation, name, "%swrappedKey "+format, append([]any{given.Field}, args...)...)
	}
	header, wrapped, err := blob.Parse(given.Blob)
	if err != nil {
		return nil, refuse("%v", err)
	}
	w := &wrapping{h: h, call: c, profile: name, set: c.set, id: header.KeyID, header: header, wrapped: wrapped}
	if header.Provider != standardProvider {
		w.id = header.Provider + "/" + header.KeyID
	}
	if provider, id := keys.SplitID(w.id); !keyrules.ValidID(w.id) || id != header.KeyID || provider != "" && provider != header.Provider {
		return nil, refuse("names a key that cannot exist, expected the id of a key and its provider")
	}
	if !policy.Keys().Allows(w.id) {
		return nil, requests.Refused(codes.PermissionDenied, c.Operation, name, "the profile does not list the key %q in KeyIds", w.id)
	}
	if !policy.Allows(header.Algorithm) {
		return nil, refuse("was wrapped with %s, expected one of the WrapAlgs of the profile: %s", header.Algorithm, policy.Algorithms())
	}
	if err := header.CheckContext(given.Context); err != nil {
		return nil, refuse("belongs to another context, expected the context that it was wrapped with")
	}
	if err := w.find(policy, header.KeyVersion); err != nil {
		return nil, err
	}
	if w.key.Public() != nil && !w.key.Signs() && !w.key.Remote() {
		return nil, requests.Refused(codes.FailedPrecondition, c.Operation, name, "the key %q has no private key, so it can only wrap", w.id)
	}
	return w, nil
}

// unwrap returns the data key. The caller overwrites it.
func (w *wrapping) unwrap(given WrappedKey) ([]byte, error) {
	dataKey, err := w.open(given)
	if err != nil {
		return nil, w.failed(given.Field, err)
	}
	return dataKey, nil
}

// open unwraps with the key. It caches data keys that a key manager has unwrapped for a short
// time. The caller and the key have been authorised before.
func (w *wrapping) open(given WrappedKey) (dataKey []byte, err error) {
	wrapper, name, wrapped, additional := w.key.Wrapper(), w.header.Algorithm.String(), w.wrapped, w.header.Additional()
	operation := w.call.Operation.String()
	unwrap := func(ctx context.Context) (dataKey []byte, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				dataKey, err = nil, w.h.Panicked(operation, cause)
			}
		}()
		return wrapper.Unwrap(ctx, name, wrapped, additional)
	}
	if _, local := wrapper.(keys.LocalWrapper); !local {
		wrapped = slices.Clone(wrapped) // the key belongs to the call, which may end before the unwrap
		return w.h.DataKeys.Get(w.call.contextOf(w.key), w.cacheID(given), unwrap)
	}
	if given.Turn {
		w.h.InTurn(w.call.Context, func() { dataKey, err = unwrap(w.call.Context) })
		return dataKey, err
	}
	return unwrap(w.call.Context)
}

// cacheID returns the id of a data key in the cache. The header in the wrapped key has the
// provider, the key, its version and the algorithm.
func (w *wrapping) cacheID(given WrappedKey) datakeycache.ID {
	caller, _ := flow.PeerOf(w.call.Context)
	identity := fmt.Appendf(nil, "%t %d %d %s", caller.Known, caller.UID, caller.GID, caller.Container)
	var generation uint64
	if stack, ok := w.h.Keys.(interface{ Generation() uint64 }); ok {
		generation = stack.Generation()
	}
	return datakeycache.NewID(identity, []byte(w.profile), []byte(w.set), binary.BigEndian.AppendUint64(nil, generation), given.Blob, given.Context)
}

// failed converts an error of a wrapper to the error for the client. field is the path of the
// wrapped key.
func (w *wrapping) failed(field string, err error) error {
	var input *wrap.InputError
	switch {
	case errors.As(err, &input):
		return requests.Refused(codes.InvalidArgument, w.call.Operation, w.profile, "%s", input.Problem)
	case errors.Is(err, engine.ErrExhausted):
		return requests.Refused(codes.FailedPrecondition, w.call.Operation, w.profile, "the key %q has wrapped 2^32 times with random nonces, the most that NIST SP 800-38D allows; replace the key", w.id)
	case errors.Is(err, keys.ErrInvalidCiphertext):
		return requests.Refused(codes.InvalidArgument, w.call.Operation, w.profile, "%swrappedKey does not authenticate with its key and context", field)
	default:
		return w.h.keyError(w.call, w.profile, w.id, err)
	}
}
