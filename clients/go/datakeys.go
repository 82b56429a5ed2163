// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
)

var (
	generateDataKey = newOperation("GenerateDataKey", 9, dataKeyMetadata)
	wrapKey         = newOperation("WrapKey", 10, dataKeyMetadata)
	unwrapKey       = newOperation("UnwrapKey", 11, dataKeyMetadata)
	unwrapBatch     = newOperation("UnwrapBatch", 12, dataKeyMetadata)
	rewrapKey       = newOperation("RewrapKey", 13, dataKeyMetadata)
	getPublicKey    = newOperation("GetPublicKey", 14, dataKeyMetadata)
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

// GenerateDataKeyRequest is a request for a new data key.
type GenerateDataKeyRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// KeyID is the id of the wrapping key. The profile has to list it.
	KeyID string
	// Context is what the data key is bound to, at most 4 KiB. It is needed again to unwrap
	// the key.
	Context []byte
	// WithoutDataKey reports whether only the wrapped key is wanted.
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
	// Unchanged reports whether WrappedKey is the wrapped key of the request, because a new one would have
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
