// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Sizes of keys that can be wrapped, in bytes.
const (
	// MinSize is the size of the smallest key: an AES key of 128 bits.
	MinSize = 16
	// MaxSize is the size of the largest key. A private RSA key of 8192 bits in PKCS #8 is
	// smaller.
	MaxSize = 8192
)

// maxWrappedSize is the size of the largest wrapped key in bytes. The largest overhead is the
// encapsulated key of ML-KEM-1024 with a tag, 1584 bytes.
const maxWrappedSize = MaxSize + 2048

// ErrUnwrap means that the wrapped key, the additional data and the wrapping key do not belong
// together. Nobody can find out which of them is wrong.
var ErrUnwrap = errors.New("wrap: the wrapped key does not authenticate")

// InputError is the error of keys, additional data and algorithms that do not fit together,
// whatever the bytes of the keys are.
type InputError struct {
	// Problem says what was found and what was expected. It has no byte of a key.
	Problem string
}

// Error implements error.
func (e *InputError) Error() string { return e.Problem }

// Wrapper wraps keys. It is safe for concurrent use.
type Wrapper interface {
	// Wrap returns the wrapped key. key has MinSize to MaxSize bytes, and no more than the
	// algorithm allows. Wrap keeps no reference to key. additional may be empty, and has to
	// be empty if [algorithm.Wrapping.BindsContext] is false.
	//
	// The error is an InputError if key, additional or the algorithm does not fit, and
	// [engine.ErrExhausted] if the AES key has been used as often as random nonces allow.
	Wrap(with algorithm.Wrapping, key, additional []byte) (wrapped []byte, err error)
}

// Unwrapper unwraps keys. It is safe for concurrent use.
type Unwrapper interface {
	Wrapper
	// Unwrap returns the key that was wrapped. The caller overwrites it after use.
	//
	// The error is ErrUnwrap for everything that is wrong with wrapped and additional. It is
	// an InputError if the wrapping key does not fit the algorithm, or if there is additional
	// data that the algorithm cannot bind.
	Unwrap(with algorithm.Wrapping, wrapped, additional []byte) (key []byte, err error)
}

func inputError(format string, args ...any) error {
	return &InputError{fmt.Sprintf(format, args...)}
}

// check returns an error if an algorithm does not fit a kind of wrapping key, or if it cannot
// authenticate the additional data.
func check(with algorithm.Wrapping, kind algorithm.WrappingKey, additional []byte) error {
	switch {
	case !with.IsKnown():
		return inputError("found the %s, expected a known one", with)
	case with.Key() != kind:
		return inputError("%s needs a key of the kind %s, found one of the kind %s", with, with.Key(), kind)
	case len(additional) > 0 && !with.BindsContext():
		return inputError("%s cannot bind a key to a context, found %d bytes of additional data, expected none", with, len(additional))
	}
	return nil
}

func checkSize(key []byte) error {
	if len(key) < MinSize || len(key) > MaxSize {
		return inputError("found a key of %d bytes, expected %d to %d", len(key), MinSize, MaxSize)
	}
	return nil
}

// unwrapped returns what an algorithm unwrapped, if it is a key that Wrap would have wrapped.
func unwrapped(key []byte, err error) ([]byte, error) {
	if err != nil || checkSize(key) != nil {
		clear(key)
		return nil, ErrUnwrap
	}
	return key, nil
}
