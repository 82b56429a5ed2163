// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
)

var (
	generateDataKey = newOperation("GenerateDataKey", 9)
	wrapKey         = newOperation("WrapKey", 10)
	unwrapKey       = newOperation("UnwrapKey", 11)
	unwrapBatch     = newOperation("UnwrapBatch", 12)
	rewrapKey       = newOperation("RewrapKey", 13)
	getPublicKey    = newOperation("GetPublicKey", 14)
)

// The numbers of the fields in requests and replies for data keys.
const (
	dataKeyMetadata number = 1 // in every reply

	generateKeyID, generateContext, generateWithout, generateMetadata number = 2, 3, 4, 5
	generatedKey, generatedWrapped, generatedDescribe                 number = 2, 3, 4

	wrapKeyID, wrapContext, wrapDataKey, wrapMetadata number = 2, 3, 4, 5
	wrappedKey, wrappedDescribe                       number = 2, 3

	unwrapWrapped, unwrapContext, unwrapMetadata number = 2, 3, 4
	unwrappedKey, unwrappedDescribe              number = 2, 3

	batchKeys, batchMetadata                  number = 2, 3
	batchWrapped, batchContext                number = 1, 2
	batchResults                              number = 2
	resultDataKey, resultCode, resultMessage  number = 1, 2, 3
	rewrapWrapped, rewrapContext, rewrapKeyID number = 2, 3, 4
	rewrapMetadata, rewrappedUnchanged        number = 5, 4
	publicKeyID, publicMetadata               number = 2, 3
	publicDER, publicPEM, publicVersion       number = 2, 3, 4
)

// read calls each with the fields of the reply, apart from its metadata. It returns the warning
// in the metadata.
func (c *Client) read(p *call, each func(f *fields) error) (warning *Deprecation, err error) {
	f := fields{wire: p.reply}
	for f.next() && err == nil {
		if f.number == dataKeyMetadata {
			warning, err = c.deprecation(f.bytes)
		} else {
			err = each(&f)
		}
	}
	if err == nil {
		err = f.err
	}
	if err != nil {
		return nil, p.unreadable(err)
	}
	return warning, nil
}

// GenerateDataKeyRequest is a request for a new data key.
type GenerateDataKeyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// KeyID is the id of the wrapping key. The profile has to list it.
	KeyID string
	// Context is what the data key is bound to, at most 4 KiB. It is needed again to unwrap
	// the key.
	Context []byte
	// WithoutDataKey is whether the wrapped key alone is wanted.
	WithoutDataKey bool
}

// GenerateDataKeyResult is the result of [Client.GenerateDataKey].
type GenerateDataKeyResult struct {
	// DataKey is the data key, of the size that the profile has. It is nil with
	// WithoutDataKey. Overwrite it after use.
	DataKey []byte
	// WrappedKey is the wrapped data key, which is not secret.
	WrappedKey []byte
	// Algorithm is the wrapping algorithm, such as "aes-gcm".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// GenerateDataKey makes a data key and wraps it. If the call is repeated, the broker makes another
// data key.
func (c *Client) GenerateDataKey(ctx context.Context, r GenerateDataKeyRequest) (result GenerateDataKeyResult, err error) {
	p, err := c.begin(ctx, generateDataKey, r.Profile, len(r.KeyID)+len(r.Context))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendString(*p.request, generateKeyID, r.KeyID)
	b = appendBytes(b, generateContext, r.Context)
	if r.WithoutDataKey {
		b = appendUint(b, generateWithout, 1)
	}
	*p.request = p.trace.appendMetadata(b, generateMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case generatedKey:
			result.DataKey = bytes.Clone(f.bytes)
		case generatedWrapped:
			result.WrappedKey = bytes.Clone(f.bytes)
		case generatedDescribe:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && (result.WrappedKey == nil || result.DataKey == nil && !r.WithoutDataKey) {
		err = p.missing("key")
	}
	if err != nil {
		clear(result.DataKey)
		return GenerateDataKeyResult{}, err
	}
	return result, nil
}

// WrapKeyRequest is a request to wrap a data key.
type WrapKeyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// KeyID is the id of the wrapping key. The profile has to list it.
	KeyID string
	// DataKey is the key to wrap, 16 to 8192 bytes.
	DataKey []byte
	// Context is as in [GenerateDataKeyRequest].
	Context []byte
}

// WrapKeyResult is the result of [Client.WrapKey].
type WrapKeyResult struct {
	// WrappedKey is the wrapped data key, which is not secret.
	WrappedKey []byte
	// Algorithm is the wrapping algorithm, such as "aes-gcm".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// WrapKey wraps a data key.
func (c *Client) WrapKey(ctx context.Context, r WrapKeyRequest) (result WrapKeyResult, err error) {
	p, err := c.begin(ctx, wrapKey, r.Profile, len(r.KeyID)+len(r.DataKey)+len(r.Context))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendString(*p.request, wrapKeyID, r.KeyID)
	b = appendBytes(b, wrapContext, r.Context)
	b = appendBytes(b, wrapDataKey, r.DataKey)
	*p.request = p.trace.appendMetadata(b, wrapMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case wrappedKey:
			result.WrappedKey = bytes.Clone(f.bytes)
		case wrappedDescribe:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && result.WrappedKey == nil {
		err = p.missing("wrapped key")
	}
	if err != nil {
		return WrapKeyResult{}, err
	}
	return result, nil
}

// WrappedKey is a wrapped key with its context.
type WrappedKey struct {
	// WrappedKey is the field of the result that made the wrapped key.
	WrappedKey []byte
	// Context is the context of the wrapped key, empty if it has none.
	Context []byte
}

// UnwrapKeyRequest is a request for the data key of a wrapped key.
type UnwrapKeyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	WrappedKey
}

// UnwrapKeyResult is the result of [Client.UnwrapKey].
type UnwrapKeyResult struct {
	// DataKey is the authentic data key. Overwrite it after use.
	DataKey []byte
	// Algorithm is the wrapping algorithm, such as "aes-gcm".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// UnwrapKey returns the data key of a wrapped key. It returns ErrInvalidArgument if the wrapped key
// does not authenticate.
func (c *Client) UnwrapKey(ctx context.Context, r UnwrapKeyRequest) (result UnwrapKeyResult, err error) {
	p, err := c.begin(ctx, unwrapKey, r.Profile, len(r.WrappedKey.WrappedKey)+len(r.Context))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendBytes(*p.request, unwrapWrapped, r.WrappedKey.WrappedKey)
	b = appendBytes(b, unwrapContext, r.Context)
	*p.request = p.trace.appendMetadata(b, unwrapMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case unwrappedKey:
			result.DataKey = bytes.Clone(f.bytes)
		case unwrappedDescribe:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && result.DataKey == nil {
		err = p.missing("data key")
	}
	if err != nil {
		clear(result.DataKey)
		return UnwrapKeyResult{}, err
	}
	return result, nil
}

// UnwrapBatchRequest is a request for the data keys of several wrapped keys.
type UnwrapBatchRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Keys are 1 to 32 wrapped keys.
	Keys []WrappedKey
}

// UnwrapBatchResult is the result of [Client.UnwrapBatch].
type UnwrapBatchResult struct {
	// Keys are the results in the order of the request.
	Keys []UnwrappedKey
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// UnwrappedKey is what became of one key of a batch.
type UnwrappedKey struct {
	// DataKey is the authentic data key, nil if there is an error. Overwrite it after use.
	DataKey []byte
	// Err is the error that UnwrapKey would have returned, an [*Error], or nil.
	Err error
}

// UnwrapBatch returns the data keys of several wrapped keys. It returns no error if some of them, or
// all, could not be unwrapped. The client does not try these again.
func (c *Client) UnwrapBatch(ctx context.Context, r UnwrapBatchRequest) (result UnwrapBatchResult, err error) {
	size := 0
	for _, key := range r.Keys {
		size += len(key.WrappedKey) + len(key.Context) + 16
	}
	p, err := c.begin(ctx, unwrapBatch, r.Profile, size)
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := *p.request
	for _, key := range r.Keys {
		start := len(b)
		b = appendBytes(b, batchWrapped, key.WrappedKey)
		b = appendBytes(b, batchContext, key.Context)
		b = nest(b, start, batchKeys)
	}
	*p.request = p.trace.appendMetadata(b, batchMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) error {
		if f.number != batchResults {
			return nil
		}
		key, err := p.unwrapped(f.bytes)
		result.Keys = append(result.Keys, key)
		return err
	})
	if err == nil && len(result.Keys) != len(r.Keys) {
		err = p.missing("result for each key")
	}
	if err != nil {
		for _, key := range result.Keys {
			clear(key.DataKey)
		}
		return UnwrapBatchResult{}, err
	}
	return result, nil
}

// unwrapped reads one result of a batch.
func (p *call) unwrapped(wire []byte) (key UnwrappedKey, err error) {
	var failed failure
	f := fields{wire: wire}
	for f.next() {
		switch f.number {
		case resultDataKey:
			key.DataKey = bytes.Clone(f.bytes)
		case resultCode:
			failed.code = Code(uint32(f.uint))
		case resultMessage:
			failed.message = string(f.bytes)
		}
	}
	if failed.failed() {
		key.Err = failed.error(p.op, p.profile)
	}
	return key, f.err
}

// RewrapKeyRequest is a request to wrap a wrapped key again.
type RewrapKeyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// WrappedKey has the context that the new wrapped key has as well.
	WrappedKey
	// KeyID is the id of the new wrapping key. It is empty for the newest version of the same
	// key.
	KeyID string
}

// RewrapKeyResult is the result of [Client.RewrapKey].
type RewrapKeyResult struct {
	// WrappedKey is the wrapped key for the same data key.
	WrappedKey []byte
	// Unchanged is whether WrappedKey is the one of the request, because a new one would have
	// the same key, version and algorithm.
	Unchanged bool
	// Algorithm is the wrapping algorithm, such as "aes-gcm".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// RewrapKey wraps a wrapped key again. The data key stays in the broker.
func (c *Client) RewrapKey(ctx context.Context, r RewrapKeyRequest) (result RewrapKeyResult, err error) {
	p, err := c.begin(ctx, rewrapKey, r.Profile, len(r.WrappedKey.WrappedKey)+len(r.Context)+len(r.KeyID))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendBytes(*p.request, rewrapWrapped, r.WrappedKey.WrappedKey)
	b = appendBytes(b, rewrapContext, r.Context)
	b = appendString(b, rewrapKeyID, r.KeyID)
	*p.request = p.trace.appendMetadata(b, rewrapMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case wrappedKey:
			result.WrappedKey = bytes.Clone(f.bytes)
		case wrappedDescribe:
			result.Algorithm, err = c.algorithm(f.bytes)
		case rewrappedUnchanged:
			result.Unchanged = f.uint != 0
		}
		return err
	})
	if err == nil && result.WrappedKey == nil {
		err = p.missing("wrapped key")
	}
	if err != nil {
		return RewrapKeyResult{}, err
	}
	return result, nil
}

// GetPublicKeyRequest is a request for the public key of a key pair.
type GetPublicKeyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// KeyID is the id of the key pair. The profile has to list it.
	KeyID string
}

// GetPublicKeyResult is the result of [Client.GetPublicKey].
type GetPublicKeyResult struct {
	// DER is the SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7).
	DER []byte
	// PEM is the same in PEM.
	PEM []byte
	// Version is the version of the key. It is empty if the key has no versions.
	Version string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// GetPublicKey returns the public key of a key pair.
func (c *Client) GetPublicKey(ctx context.Context, r GetPublicKeyRequest) (result GetPublicKeyResult, err error) {
	p, err := c.begin(ctx, getPublicKey, r.Profile, len(r.KeyID))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendString(*p.request, publicKeyID, r.KeyID)
	*p.request = p.trace.appendMetadata(b, publicMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) error {
		switch f.number {
		case publicDER:
			result.DER = bytes.Clone(f.bytes)
		case publicPEM:
			result.PEM = bytes.Clone(f.bytes)
		case publicVersion:
			result.Version = string(f.bytes)
		}
		return nil
	})
	if err == nil && result.DER == nil {
		err = p.missing("public key")
	}
	if err != nil {
		return GetPublicKeyResult{}, err
	}
	return result, nil
}
