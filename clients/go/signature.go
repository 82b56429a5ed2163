// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
)

var (
	signData   = newOperation("SignData", 7, signedMetadata)
	verifyData = newOperation("VerifyData", 8, verifiedMetadata)
)

// The numbers of the fields in requests and replies of SignData and VerifyData.
const (
	signKey, signInput, signFormat, signMetadata                          number = 2, 3, 4, 5
	signedSignature, signedDescriptor, signedMetadata                     number = 1, 2, 3
	verifyKey, verifyInput, verifySignature, verifyFormat, verifyMetadata number = 2, 3, 4, 5, 6
	verifiedValid, verifiedMetadata                                       number = 1, 2
)

// SignatureFormat is the encoding of a signature.
type SignatureFormat uint8

// The formats of signatures.
const (
	// SignatureFormatDefault is the format of the profile, or SignatureFormatRaw if the
	// profile has none.
	SignatureFormatDefault SignatureFormat = 0
	// SignatureFormatRaw is r and s joined for ECDSA, and the octets of the algorithm
	// otherwise.
	SignatureFormatRaw SignatureFormat = 1
	// SignatureFormatDER is an ECDSA-Sig-Value (RFC 3279) for ECDSA, and the octets of the
	// algorithm otherwise.
	SignatureFormatDER SignatureFormat = 2
	// SignatureFormatPEM is SignatureFormatDER in PEM with the label SIGNATURE.
	SignatureFormatPEM SignatureFormat = 3
	// SignatureFormatCMS is a detached SignedData (RFC 5652).
	SignatureFormatCMS SignatureFormat = 4
)

// SignDataRequest is a request for a signature.
type SignDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Key is the private key. For a hybrid it is the key of the classical algorithm.
	Key Key
	// PostQuantumKey is the second key of a hybrid. It is the zero value otherwise.
	PostQuantumKey Key
	// Input is what to sign, at most 1 MiB.
	Input []byte
	// Format is the format of the signature.
	Format SignatureFormat
}

// SignDataResult is a signature.
type SignDataResult struct {
	// Signature is the signature in the format of the request.
	Signature []byte
	// Algorithm is the algorithm of the profile, such as "ed25519".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// SignData signs with the algorithm of a profile.
func (c *Client) SignData(ctx context.Context, r SignDataRequest) (SignDataResult, error) {
	p, err := c.begin(ctx, signData, r.Profile, r.Key.size()+r.PostQuantumKey.size()+len(r.Input))
	if err != nil {
		return SignDataResult{}, err
	}
	defer c.end(p)
	b := appendSigning(*p.request, signKey, r.Key, r.PostQuantumKey)
	b = appendBytes(b, signInput, r.Input)
	b = appendUint(b, signFormat, uint64(r.Format))
	*p.request = p.trace.appendMetadata(b, signMetadata)
	if err := c.do(ctx, p); err != nil {
		return SignDataResult{}, err
	}
	var result SignDataResult
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case signedSignature:
			result.Signature = bytes.Clone(f.bytes)
		case signedDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	switch {
	case err != nil:
		return SignDataResult{}, err
	case result.Signature == nil:
		return SignDataResult{}, p.missing("signature")
	}
	return result, nil
}

// VerifyDataRequest is a request to verify a signature.
type VerifyDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Key is a public key, a certificate or a private key. For a hybrid it is the key of the
	// classical algorithm.
	Key Key
	// PostQuantumKey is the second key of a hybrid. It is the zero value otherwise.
	PostQuantumKey Key
	// Input is what was signed, at most 1 MiB.
	Input []byte
	// Signature is the signature, at most 64 KiB.
	Signature []byte
	// Format is the format of the signature.
	Format SignatureFormat
}

// VerifyDataResult says whether a signature is valid.
type VerifyDataResult struct {
	// Valid reports whether the key has made the signature of the input.
	Valid bool
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// VerifyData verifies a signature. It returns ErrInvalidArgument for a signature that does not
// have the format, so that callers can tell a mistake from a forgery.
func (c *Client) VerifyData(ctx context.Context, r VerifyDataRequest) (VerifyDataResult, error) {
	p, err := c.begin(ctx, verifyData, r.Profile, r.Key.size()+r.PostQuantumKey.size()+len(r.Input)+len(r.Signature))
	if err != nil {
		return VerifyDataResult{}, err
	}
	defer c.end(p)
	b := appendSigning(*p.request, verifyKey, r.Key, r.PostQuantumKey)
	b = appendBytes(b, verifyInput, r.Input)
	b = appendBytes(b, verifySignature, r.Signature)
	b = appendUint(b, verifyFormat, uint64(r.Format))
	*p.request = p.trace.appendMetadata(b, verifyMetadata)
	if err := c.do(ctx, p); err != nil {
		return VerifyDataResult{}, err
	}
	var result VerifyDataResult
	result.Deprecation, err = c.read(p, func(f *fields) error {
		if f.number == verifiedValid {
			result.Valid = f.uint != 0
		}
		return nil
	})
	if err != nil {
		return VerifyDataResult{}, err
	}
	return result, nil
}
