// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers && pkcs11

package pkcs11_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/test/softhsm"
)

func TestDataKeysAreWrappedInTheToken(t *testing.T) {
	token := softhsm.NewToken(t, "wraps")
	token.ImportAES(t, "kek", 1, material)
	w := find(t, open(t, token), "kek").Wrapper()
	memory, err := wrap.NewAES(material)
	if err != nil {
		t.Fatal(err)
	}
	dataKey := []byte("a data key that has 32 bytes....")
	for _, with := range []struct {
		algorithm algorithm.Wrapping
		context   []byte
	}{{algorithm.WrapAESGCM, []byte("tenant")}, {algorithm.WrapAESKW, nil}, {algorithm.WrapAESKWP, nil}} {
		name := with.algorithm.String()
		wrapped, err := w.Wrap(t.Context(), name, dataKey, with.context)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := memory.Unwrap(with.algorithm, wrapped, with.context); err != nil || !bytes.Equal(got, dataKey) {
			t.Errorf("%s: a key in memory does not unwrap what the token wrapped: %v", name, err)
		}
		if got, err := w.Unwrap(t.Context(), name, wrapped, with.context); err != nil || !bytes.Equal(got, dataKey) {
			t.Errorf("%s: the token does not unwrap: %v", name, err)
		}
		for _, forged := range [][]byte{nil, wrapped[:len(wrapped)-8], append(bytes.Clone(wrapped[:len(wrapped)-1]), wrapped[len(wrapped)-1]^1)} {
			if _, err := w.Unwrap(t.Context(), name, forged, with.context); !errors.Is(err, keys.ErrInvalidCiphertext) {
				t.Errorf("%s: %d bytes that are forged: got %v, want ErrInvalidCiphertext", name, len(forged), err)
			}
		}
	}
	var input *wrap.InputError
	if _, err := w.Wrap(t.Context(), algorithm.WrapAESKW.String(), dataKey, []byte("tenant")); !errors.As(err, &input) {
		t.Errorf("a context that AES key wrap cannot bind: got %v", err)
	}
	if _, err := w.Wrap(t.Context(), algorithm.WrapRSAOAEPSHA256.String(), dataKey, nil); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("another algorithm: got %v, want ErrUnusable", err)
	}
}

func TestAESKeyWrapWithPaddingIsThatOfRFC5649(t *testing.T) {
	token := softhsm.NewToken(t, "pads")
	token.ImportAES(t, "kek", 1, material)
	w := find(t, open(t, token), "kek").Wrapper()
	memory, err := wrap.NewAES(material)
	if err != nil {
		t.Fatal(err)
	}
	const padded = algorithm.WrapAESKWP
	for size := wrap.MinSize; size <= 40; size++ {
		dataKey := bytes.Repeat([]byte{byte(size)}, size)
		outside, err := memory.Wrap(padded, dataKey, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.Unwrap(t.Context(), padded.String(), outside, nil); err != nil || !bytes.Equal(got, dataKey) {
			t.Errorf("%d bytes: the token does not unwrap what was wrapped outside: %v", size, err)
		}
		inside, err := w.Wrap(t.Context(), padded.String(), dataKey, nil)
		if input := (*wrap.InputError)(nil); size%8 != 0 {
			// SoftHSM would wrap another key.
			if !errors.As(err, &input) || !strings.Contains(err.Error(), "expected a multiple of 8, because the library of the token") {
				t.Errorf("%d bytes: got %v, want an error of the input", size, err)
			}
		} else if err != nil || !bytes.Equal(inside, outside) {
			t.Errorf("%d bytes: the token and RFC 5649 have different results: %v", size, err)
		}
	}
	var input *wrap.InputError
	if _, err := w.Wrap(t.Context(), algorithm.WrapAESKW.String(), make([]byte, 17), nil); !errors.As(err, &input) || !strings.Contains(err.Error(), "expected a multiple of 8 for aes-kw; aes-kwp wraps keys of other sizes") {
		t.Errorf("17 bytes without padding: got %v", err)
	}
}

func TestAnRSAKeyOfATokenWrapsNoDataKeys(t *testing.T) {
	token := softhsm.NewToken(t, "rsa-wraps-not")
	token.MakeRSA(t, "rsa", 1, 2048)
	if key := find(t, open(t, token), "rsa"); key.Wrapper() != nil {
		t.Error("the key wraps, and nobody can unwrap with a label")
	}
}
