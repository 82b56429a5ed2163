// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
)

var (
	encryptData = newOperation("EncryptData", 5, sealedMetadata)
	decryptData = newOperation("DecryptData", 6, openedMetadata)
)

// The numbers of the fields in requests and replies of EncryptData and DecryptData.
const (
	encryptKey, encryptPlaintext, encryptParameters, encryptMetadata   number = 2, 3, 4, 5
	parameterNonce, parameterAAD, parameterTag                         number = 1, 2, 3
	sealedCiphertext, sealedParameters, sealedMetadata, sealedDescribe number = 1, 2, 3, 4
	sealedKeyID, sealedNonce, sealedAAD, sealedTag                     number = 1, 2, 3, 4
	decryptKey, decryptCiphertext, decryptParameters, decryptMetadata  number = 2, 3, 4, 5
	openedPlaintext, openedMetadata                                    number = 1, 2
)

// EncryptDataRequest is a request to encrypt data.
type EncryptDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Key is the AES key.
	Key Key
	// Plaintext is what to encrypt, at most 1 MiB.
	Plaintext []byte
	// Nonce has 12 bytes, which must never be used again with the same key. It is empty if
	// the broker makes the nonce: the profile has NonceStrategy "random".
	Nonce []byte
	// AdditionalData is authenticated but not encrypted, at most 64 KiB.
	AdditionalData []byte
}

// EncryptDataResult is the result of [Client.EncryptData]. DecryptData needs it together with
// the key and the additional data. None of its fields is secret.
type EncryptDataResult struct {
	// Ciphertext is as long as the plaintext.
	Ciphertext []byte
	// Nonce is the nonce that was used.
	Nonce []byte
	// Tag is the authentication tag.
	Tag []byte
	// KeyID is the id of the key, for DecryptData; empty if the request brought the key. If its
	// key manager has versions of the key, it names the version, and decrypts after the key was
	// rotated.
	KeyID string
	// Algorithm is the algorithm of the profile, such as "aes-gcm".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// EncryptData encrypts with the algorithm of a profile. The comment of the package says what
// it means if a call is repeated.
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
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case sealedCiphertext:
			result.Ciphertext = bytes.Clone(f.bytes)
		case sealedParameters:
			err = result.readParameters(f.bytes)
		case sealedDescribe:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	switch {
	case err != nil:
		return EncryptDataResult{}, err
	case result.Nonce == nil || result.Tag == nil:
		return EncryptDataResult{}, p.missing("nonce and tag")
	}
	return result, nil
}

func (r *EncryptDataResult) readParameters(wire []byte) error {
	f := fields{wire: wire}
	for f.next() {
		switch f.number {
		case sealedKeyID:
			r.KeyID = string(f.bytes)
		case sealedNonce:
			r.Nonce = bytes.Clone(f.bytes)
		case sealedTag:
			r.Tag = bytes.Clone(f.bytes)
		}
	}
	return f.err
}

// appendParameters appends a field with EncryptMetadata or DecryptMetadata.
func appendParameters(b []byte, n number, nonce, aad, tag []byte) []byte {
	start := len(b)
	b = appendBytes(b, parameterNonce, nonce)
	b = appendBytes(b, parameterAAD, aad)
	b = appendBytes(b, parameterTag, tag)
	return nest(b, start, n)
}

// DecryptDataRequest is a request to decrypt what EncryptData has encrypted.
type DecryptDataRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// Key is the AES key.
	Key Key
	// Ciphertext, Nonce and Tag are the fields of the [EncryptDataResult].
	Ciphertext, Nonce, Tag []byte
	// AdditionalData is the field of the [EncryptDataRequest].
	AdditionalData []byte
}

// DecryptDataResult is the result of [Client.DecryptData].
type DecryptDataResult struct {
	// Plaintext is the authentic plaintext.
	Plaintext []byte
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// DecryptData decrypts with the algorithm of a profile. It returns ErrInvalidArgument if the
// ciphertext does not authenticate.
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
	result.Deprecation, err = c.read(p, func(f *fields) error {
		if f.number == openedPlaintext {
			result.Plaintext = bytes.Clone(f.bytes)
		}
		return nil
	})
	if err != nil {
		return DecryptDataResult{}, err
	}
	return result, nil
}
