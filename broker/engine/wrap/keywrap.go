// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
)

// semiblock is the unit of AES key wrap in bytes: half a block of AES.
const semiblock = aes.BlockSize / 2

// Initial values of AES key wrap. A value is authenticated with the key.
const (
	// initialValue is from RFC 3394, section 2.2.3.1.
	initialValue = 0xA6A6A6A6A6A6A6A6
	// paddedInitialValue is the first half of the value with padding (RFC 5649, section 3).
	// The size of the key in bytes is the second half.
	paddedInitialValue = 0xA65959A6
)

// rounds is the number of times that each semiblock is encrypted (RFC 3394, section 2.2.1).
const rounds = 6

// wrapKW wraps a key of at least two semiblocks, without padding (RFC 3394, section 2.2.1).
func wrapKW(block cipher.Block, key []byte) []byte {
	wrapped := make([]byte, semiblock+len(key))
	copy(wrapped[semiblock:], key)
	wrapSemiblocks(block, initialValue, wrapped)
	return wrapped
}

// unwrapKW is the inverse of wrapKW. It does not check the size of wrapped, which has to be a
// multiple of a semiblock, and at least three.
func unwrapKW(block cipher.Block, wrapped []byte) ([]byte, error) {
	initial, key := unwrapSemiblocks(block, wrapped)
	var found, want [semiblock]byte
	binary.BigEndian.PutUint64(found[:], initial)
	binary.BigEndian.PutUint64(want[:], initialValue)
	if subtle.ConstantTimeCompare(found[:], want[:]) != 1 {
		clear(key)
		return nil, ErrUnwrap
	}
	return key, nil
}

// wrapKWP wraps a key of more than one semiblock, with padding (RFC 5649, section 4.1).
func wrapKWP(block cipher.Block, key []byte) []byte {
	padded := (len(key) + semiblock - 1) / semiblock * semiblock
	wrapped := make([]byte, semiblock+padded)
	copy(wrapped[semiblock:], key)
	wrapSemiblocks(block, paddedInitialValue<<32|uint64(len(key)), wrapped)
	return wrapped
}

// unwrapKWP is the inverse of wrapKWP. It expects the same sizes as unwrapKW. Its time does not
// depend on which part of the initial value or of the padding is wrong.
func unwrapKWP(block cipher.Block, wrapped []byte) ([]byte, error) {
	initial, padded := unwrapSemiblocks(block, wrapped)
	ok := subtle.ConstantTimeEq(int32(initial>>32), int32(paddedInitialValue-1<<32))
	// Functions of package subtle take numbers below 2^31.
	ok &= subtle.ConstantTimeEq(int32(initial>>31&1), 0)
	size := int(initial & (1<<31 - 1))
	ok &= subtle.ConstantTimeLessOrEq(len(padded)-semiblock+1, size)
	ok &= subtle.ConstantTimeLessOrEq(size, len(padded))
	for i := len(padded) - semiblock + 1; i < len(padded); i++ {
		inKey := subtle.ConstantTimeLessOrEq(i+1, size)
		ok &= inKey | subtle.ConstantTimeByteEq(padded[i], 0)
	}
	if ok != 1 {
		clear(padded)
		return nil, ErrUnwrap
	}
	return padded[:size:size], nil
}

// wrapSemiblocks wraps data in place. Its first semiblock is free for the initial value.
func wrapSemiblocks(block cipher.Block, initial uint64, data []byte) {
	var b [aes.BlockSize]byte
	defer clear(b[:])
	binary.BigEndian.PutUint64(b[:], initial)
	step := uint64(0)
	for range rounds {
		for at := semiblock; at < len(data); at += semiblock {
			step++
			copy(b[semiblock:], data[at:at+semiblock])
			block.Encrypt(b[:], b[:])
			binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])^step)
			copy(data[at:], b[semiblock:])
		}
	}
	copy(data, b[:semiblock])
}

// unwrapSemiblocks returns the initial value and the data without it.
func unwrapSemiblocks(block cipher.Block, wrapped []byte) (initial uint64, data []byte) {
	var b [aes.BlockSize]byte
	defer clear(b[:])
	copy(b[:], wrapped[:semiblock])
	data = append([]byte(nil), wrapped[semiblock:]...)
	step := uint64(rounds * len(data) / semiblock)
	for range rounds {
		for at := len(data) - semiblock; at >= 0; at -= semiblock {
			binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])^step)
			copy(b[semiblock:], data[at:at+semiblock])
			block.Decrypt(b[:], b[:])
			copy(data[at:], b[semiblock:])
			step--
		}
	}
	return binary.BigEndian.Uint64(b[:]), data
}
