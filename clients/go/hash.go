// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
	"encoding/hex"
)

var hashData = newOperation("HashData", 3, hashedMetadata)

// The numbers of the fields in requests and replies of HashData.
const (
	hashInput, hashMetadata, hashFormat                    number = 2, 3, 4
	hashedMetadata, hashedHex, hashedRaw, hashedDescriptor number = 1, 2, 3, 4

	// hashFormatRaw is a value of HashOutputFormat.
	hashFormatRaw = 2
)

// HashDataRequest is a request for a digest.
type HashDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Input is what to hash, at most 1 MiB. [Client.HashReader] hashes larger inputs.
	Input []byte
}

// HashDataResult is a digest.
type HashDataResult struct {
	// Digest is the digest.
	Digest []byte
	// Algorithm is the algorithm of the profile, such as "sha3-512".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// Hex returns the digest in lower-case hexadecimal digits.
func (r HashDataResult) Hex() string { return hex.EncodeToString(r.Digest) }

// HashData computes a digest with the algorithm of a profile.
func (c *Client) HashData(ctx context.Context, r HashDataRequest) (HashDataResult, error) {
	p, err := c.begin(ctx, hashData, r.Profile, len(r.Input))
	if err != nil {
		return HashDataResult{}, err
	}
	defer c.end(p)
	b := appendBytes(*p.request, hashInput, r.Input)
	b = p.trace.appendMetadata(b, hashMetadata)
	*p.request = appendUint(b, hashFormat, hashFormatRaw)
	if err := c.do(ctx, p); err != nil {
		return HashDataResult{}, err
	}
	result, err := c.hashed(p.reply)
	switch {
	case err != nil:
		return HashDataResult{}, p.unreadable(err)
	case result.Digest == nil:
		return HashDataResult{}, p.missing("digest")
	}
	return result, nil
}

// hashed reads a HashDataResponse or a HashStreamResponse, which have the same fields.
func (c *Client) hashed(reply []byte) (result HashDataResult, err error) {
	f := fields{wire: reply}
	for f.next() && err == nil {
		switch f.number {
		case hashedRaw:
			result.Digest = bytes.Clone(f.bytes)
		case hashedDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		case hashedMetadata:
			result.Deprecation, err = c.deprecation(f.bytes)
		}
	}
	if err == nil {
		err = f.err
	}
	return result, err
}

// algorithm returns the algorithm in a descriptor.
func (c *Client) algorithm(descriptor []byte) (name string, err error) {
	f := fields{wire: descriptor}
	for f.next() {
		if f.number == descriptorAlgorithm {
			name = c.algorithms.of(f.bytes)
		}
	}
	return name, f.err
}

// deprecation returns the warning in the metadata of a reply, and calls the handler of
// warnings.
func (c *Client) deprecation(metadata []byte) (*Deprecation, error) {
	d, err := readDeprecation(metadata)
	if err != nil {
		return nil, err
	}
	c.tell(d)
	return d, nil
}
