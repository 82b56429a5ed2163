// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
)

var (
	encryptData = newOperation("EncryptData", 5)
	decryptData = newOperation("DecryptData", 6)
)

// EncryptDataRequest asks for an encryption.
type EncryptDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Key is the AES key.
	Key Key
	// Plaintext is what to encrypt, at most 1 MiB.
	Plaintext []byte
	// Nonce is 12 bytes that are never used twice with the same key; empty where
	// the profile has the broker make it.
	Nonce []byte
	// AdditionalData is authenticated but not encrypted, at most 64 KiB.
	AdditionalData []byte
}

// EncryptDataResult is what DecryptData needs, beside the key and the additional
// data. None of it is a secret.
type EncryptDataResult struct {
	// Ciphertext is as long as the plaintext.
	Ciphertext []byte
	// Nonce is the one that was used.
	Nonce []byte
	// Tag is the authentication tag.
	Tag []byte
	// Algorithm is what the profile chose, such as "aes-gcm".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// EncryptData encrypts by the algorithm of a profile. See the package on what a
// repeated call means.
func (c *Client) EncryptData(ctx context.Context, r EncryptDataRequest) (EncryptDataResult, error) {
	p, err := c.begin(ctx, encryptData, r.Profile, r.Key.size()+len(r.Plaintext)+len(r.Nonce)+len(r.AdditionalData))
	if err != nil {
		return EncryptDataResult{}, err
	}
	defer c.end(p)
	b := r.Key.append(*p.request, encryptKey)
	b = appendBytes(b, encryptPlaintext, r.Plaintext)
	b = appendParameters(b, encryptParameters, r.Nonce, r.AdditionalData, nil)
	*p.request = p.trace.appendMetadata(b, encryptMetadata)
	if err := c.do(ctx, p); err != nil {
		return EncryptDataResult{}, err
	}
	result := EncryptDataResult{Ciphertext: []byte{}}
	f := fields{wire: p.reply}
	for f.next() && err == nil {
		switch f.number {
		case sealedCiphertext:
			result.Ciphertext = bytes.Clone(f.bytes)
		case sealedParameters:
			err = result.readParameters(f.bytes)
		case sealedDescribe:
			result.Algorithm, err = c.algorithm(f.bytes)
		case sealedMetadata:
			result.Deprecation, err = c.deprecation(f.bytes)
		}
	}
	switch {
	case err != nil:
		return EncryptDataResult{}, p.unreadable(err)
	case f.err != nil:
		return EncryptDataResult{}, p.unreadable(f.err)
	case result.Nonce == nil || result.Tag == nil:
		return EncryptDataResult{}, p.missing("nonce and tag")
	}
	return result, nil
}

func (r *EncryptDataResult) readParameters(wire []byte) error {
	f := fields{wire: wire}
	for f.next() {
		switch f.number {
		case sealedNonce:
			r.Nonce = bytes.Clone(f.bytes)
		case sealedTag:
			r.Tag = bytes.Clone(f.bytes)
		}
	}
	return f.err
}

// appendParameters appends an EncryptMetadata or a DecryptMetadata.
func appendParameters(b []byte, n number, nonce, aad, tag []byte) []byte {
	start := len(b)
	b = appendBytes(b, parameterNonce, nonce)
	b = appendBytes(b, parameterAAD, aad)
	b = appendBytes(b, parameterTag, tag)
	return nest(b, start, n)
}

// DecryptDataRequest asks for the plaintext of what EncryptData made.
type DecryptDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Key is the AES key.
	Key Key
	// Ciphertext, Nonce and Tag are those of the result of EncryptData.
	Ciphertext, Nonce, Tag []byte
	// AdditionalData is that of the request to EncryptData.
	AdditionalData []byte
}

// DecryptDataResult is a plaintext, which was authentic.
type DecryptDataResult struct {
	// Plaintext is what was encrypted.
	Plaintext []byte
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// DecryptData decrypts by the algorithm of a profile. What does not authenticate is
// ErrInvalidArgument.
func (c *Client) DecryptData(ctx context.Context, r DecryptDataRequest) (DecryptDataResult, error) {
	p, err := c.begin(ctx, decryptData, r.Profile, r.Key.size()+len(r.Ciphertext)+len(r.Nonce)+len(r.Tag)+len(r.AdditionalData))
	if err != nil {
		return DecryptDataResult{}, err
	}
	defer c.end(p)
	b := r.Key.append(*p.request, decryptKey)
	b = appendBytes(b, decryptCiphertext, r.Ciphertext)
	b = appendParameters(b, decryptParameters, r.Nonce, r.AdditionalData, r.Tag)
	*p.request = p.trace.appendMetadata(b, decryptMetadata)
	if err := c.do(ctx, p); err != nil {
		return DecryptDataResult{}, err
	}
	result := DecryptDataResult{Plaintext: []byte{}}
	f := fields{wire: p.reply}
	for f.next() && err == nil {
		switch f.number {
		case openedPlaintext:
			result.Plaintext = bytes.Clone(f.bytes)
		case openedMetadata:
			result.Deprecation, err = c.deprecation(f.bytes)
		}
	}
	if err == nil {
		err = f.err
	}
	if err != nil {
		return DecryptDataResult{}, p.unreadable(err)
	}
	return result, nil
}
