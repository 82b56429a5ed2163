// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
	"errors"
)

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
	if err == nil && len(result.DataKey) == 0 {
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
	// Keys are the keys to unwrap, 1 to 32.
	Keys []WrappedKey
}

// UnwrapBatchResult is the result of [Client.UnwrapBatch].
type UnwrapBatchResult struct {
	// Keys are the results in the order of the request.
	Keys []UnwrappedKey
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// UnwrappedKey is the result for one key of a batch.
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
	switch {
	case f.err != nil:
		return key, f.err
	case failed.failed():
		key.Err = failed.error(p.op, p.profile)
	case len(key.DataKey) == 0:
		return key, errors.New("it has neither a data key nor an error for a wrapped key")
	}
	return key, nil
}
