// SPDX-License-Identifier: Apache-2.0

package wrap_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hpke"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
)

// Two RSA keys, which take long to make.
var (
	rsa2048    = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	anotherRSA = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
)

// keyFor returns a new key pair or AES key for an algorithm.
func keyFor(t *testing.T, with algorithm.Wrapping) wrap.Unwrapper {
	t.Helper()
	var private crypto.PrivateKey
	var err error
	switch with.Key() {
	case algorithm.AESWrappingKey:
		return newAES(t, 32)
	case algorithm.RSAWrappingKey:
		private, err = rsa2048()
	case algorithm.P256WrappingKey:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case algorithm.P384WrappingKey:
		private, err = ecdh.P384().GenerateKey(rand.Reader)
	case algorithm.P521WrappingKey:
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case algorithm.MLKEM768WrappingKey:
		private, err = mlkem.GenerateKey768()
	case algorithm.MLKEM1024WrappingKey:
		private, err = mlkem.GenerateKey1024()
	case algorithm.MLKEMX25519WrappingKey:
		private, err = hpke.MLKEM768X25519().GenerateKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := wrap.NewPrivate(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAES(t *testing.T, size int) *wrap.AES {
	t.Helper()
	key, err := wrap.NewAES(random(size))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never returns an error
	return data
}

// every runs a test for each algorithm.
func every(t *testing.T, test func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper)) {
	for _, name := range algorithm.Wrappings() {
		with, _ := algorithm.FindWrapping(name)
		t.Run(name, func(t *testing.T) { test(t, with, keyFor(t, with)) })
	}
}

// additionalFor returns additional data, or none if the algorithm does not take any.
func additionalFor(with algorithm.Wrapping) []byte {
	if !with.BindsContext() {
		return nil
	}
	return []byte("context")
}

func TestAKeyIsTheSameAfterItWasWrappedAndUnwrapped(t *testing.T) {
	every(t, func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper) {
		sizes := []int{16, 24, 32, 48, 64}
		if with != algorithm.WrapAESKW {
			sizes = append(sizes, 17, 23, 31, 63)
		}
		if with.Key() != algorithm.RSAWrappingKey {
			sizes = append(sizes, wrap.MaxSize)
		}
		for _, size := range sizes {
			data := random(size)
			before := bytes.Clone(data)
			wrapped, err := key.Wrap(with, data, additionalFor(with))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, before) {
				t.Errorf("wrapping changed the key of %d bytes", size)
			}
			if bytes.Contains(wrapped, data) {
				t.Errorf("the wrapped key has the key of %d bytes", size)
			}
			got, err := key.Unwrap(with, wrapped, additionalFor(with))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("a key of %d bytes: found %d bytes and the error %v", size, len(got), err)
			}
		}
	})
}

func TestAKeyThatWasChangedAnywhereDoesNotUnwrap(t *testing.T) {
	every(t, func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper) {
		wrapped, err := key.Wrap(with, random(32), additionalFor(with))
		if err != nil {
			t.Fatal(err)
		}
		changes := map[string][]byte{
			"nothing":                  nil,
			"one byte more":            append(bytes.Clone(wrapped), 0),
			"eight bytes more":         append(bytes.Clone(wrapped), make([]byte, 8)...),
			"one byte more in front":   append([]byte{0}, wrapped...),
			"one byte less":            wrapped[:len(wrapped)-1],
			"eight bytes less":         wrapped[:len(wrapped)-8],
			"one byte less in front":   wrapped[1:],
			"one byte":                 wrapped[:1],
			"eight bytes":              wrapped[:8],
			"sixteen bytes":            wrapped[:16],
			"zeros":                    make([]byte, len(wrapped)),
			"far too many":             make([]byte, 1<<20),
			"the same two times":       append(bytes.Clone(wrapped), wrapped...),
			"what another key wrapped": wrappedByAnother(t, with),
		}
		step := max(1, len(wrapped)/40)
		for at := 0; at < len(wrapped); at += step {
			changed := bytes.Clone(wrapped)
			changed[at] ^= 0x80
			changes[fmt.Sprintf("byte %d", at)] = changed
		}
		for what, changed := range changes {
			if got, err := key.Unwrap(with, changed, additionalFor(with)); got != nil || err != wrap.ErrUnwrap { //nolint:errorlint // exactly this error
				t.Errorf("%s: found %d bytes and the error %v, want ErrUnwrap", what, len(got), err)
			}
		}
	})
}

func wrappedByAnother(t *testing.T, with algorithm.Wrapping) []byte {
	t.Helper()
	var another wrap.Wrapper
	if with.Key() == algorithm.RSAWrappingKey {
		private, err := anotherRSA()
		if err != nil {
			t.Fatal(err)
		}
		if another, err = wrap.NewPublic(&private.PublicKey); err != nil {
			t.Fatal(err)
		}
	} else {
		another = keyFor(t, with)
	}
	wrapped, err := another.Wrap(with, random(32), additionalFor(with))
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

func TestAKeyDoesNotUnwrapWithOtherAdditionalData(t *testing.T) {
	every(t, func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper) {
		if !with.BindsContext() {
			for what, err := range map[string]error{
				"wrap":   second(key.Wrap(with, random(32), []byte("c"))),
				"unwrap": second(key.Unwrap(with, random(40), []byte("c"))),
			} {
				if !isInputError(err, "cannot bind a key to a context, found 1 bytes of additional data, expected none") {
					t.Errorf("%s with additional data: found the error %v", what, err)
				}
			}
			return
		}
		wrapped, err := key.Wrap(with, random(32), []byte("context"))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"", "contex", "context ", "Context"} {
			if _, err := key.Unwrap(with, wrapped, []byte(other)); !errors.Is(err, wrap.ErrUnwrap) {
				t.Errorf("with %q: found the error %v, want ErrUnwrap", other, err)
			}
		}
	})
}

// A blob names its algorithm, and anybody who stores blobs can change that name.
func TestAKeyDoesNotUnwrapWithAnotherAlgorithmOfTheSameKey(t *testing.T) {
	every(t, func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper) {
		wrapped, err := key.Wrap(with, random(32), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range algorithm.Wrappings() {
			other, _ := algorithm.FindWrapping(name)
			if other == with {
				continue
			}
			_, err := key.Unwrap(other, wrapped, nil)
			if other.Key() == with.Key() && !errors.Is(err, wrap.ErrUnwrap) {
				t.Errorf("with %s: found the error %v, want ErrUnwrap", other, err)
			}
			if other.Key() != with.Key() && !isInputError(err, fmt.Sprintf("%s needs a key of the kind %s, found one of the kind %s", other, other.Key(), with.Key())) {
				t.Errorf("with %s: found the error %v", other, err)
			}
		}
		if _, err := key.Wrap(0, random(32), nil); !isInputError(err, "found the wrapping algorithm 0, expected a known one") {
			t.Errorf("with no algorithm: found the error %v", err)
		}
	})
}

func TestKeysOfOtherSizesAreNotWrapped(t *testing.T) {
	every(t, func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper) {
		for _, size := range []int{0, 1, 8, 15, wrap.MaxSize + 1} {
			if _, err := key.Wrap(with, random(size), nil); !isInputError(err, fmt.Sprintf("found a key of %d bytes, expected 16 to 8192", size)) {
				t.Errorf("%d bytes: found the error %v", size, err)
			}
		}
	})
	if _, err := newAES(t, 16).Wrap(algorithm.WrapAESKW, random(20), nil); !isInputError(err, "found a key of 20 bytes, expected a multiple of 8 for aes-kw; aes-kwp wraps keys of other sizes") {
		t.Errorf("found the error %v", err)
	}
	if _, err := keyFor(t, algorithm.WrapRSAOAEPSHA512).Wrap(algorithm.WrapRSAOAEPSHA512, random(127), nil); !isInputError(err, "found a key of 127 bytes, expected at most 126 for rsa-oaep-sha-512 with an RSA key of 2048 bits") {
		t.Errorf("found the error %v", err)
	}
}

func TestWrappingTwoTimesGivesTwoResultsExceptWithKeyWrap(t *testing.T) {
	every(t, func(t *testing.T, with algorithm.Wrapping, key wrap.Unwrapper) {
		data := random(32)
		one, err := key.Wrap(with, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		two, err := key.Wrap(with, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		deterministic := with == algorithm.WrapAESKW || with == algorithm.WrapAESKWP
		if bytes.Equal(one, two) != deterministic {
			t.Errorf("the results are equal: %v", bytes.Equal(one, two))
		}
	})
}

func TestKeysThatDoNotWrapAreRefused(t *testing.T) {
	rsaOf := func(bits uint, exponent int) *rsa.PrivateKey {
		modulus := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: modulus.Add(modulus, big.NewInt(1)), E: exponent}}
	}
	small, odd, smallExponent := rsaOf(1024, 65537), rsaOf(2049, 65537), rsaOf(2048, 3)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	otherHybrid, err := hpke.MLKEM768P256().GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	const curve = "is on an elliptic curve that does not wrap, expected P-256, P-384 or P-521"
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"a small public RSA key":    {second(wrap.NewPublic(&small.PublicKey)), "is an RSA key of 1024 bits, expected at least 2048"},
		"a small private RSA key":   {second(wrap.NewPrivate(small)), "is an RSA key of 1024 bits, expected at least 2048"},
		"an RSA key of odd size":    {second(wrap.NewPrivate(odd)), "is an RSA key of 2049 bits, expected an even number, because this broker requires keys that FIPS 186-5 approves"},
		"a small exponent":          {second(wrap.NewPublic(&smallExponent.PublicKey)), "is an RSA key with the public exponent 3, expected more than 65536, because this broker requires keys that FIPS 186-5 approves"},
		"a public key on P-224":     {second(wrap.NewPublic(&p224.PublicKey)), curve},
		"a private key on P-224":    {second(wrap.NewPrivate(p224)), curve},
		"a public X25519 key":       {second(wrap.NewPublic(x25519.PublicKey())), curve},
		"a private X25519 key":      {second(wrap.NewPrivate(x25519)), curve},
		"a public Ed25519 key":      {second(wrap.NewPublic(public)), "is a public key of a kind that does not wrap (ed25519.PublicKey), expected RSA, a NIST curve, ML-KEM or MLKEM768-X25519"},
		"a private Ed25519 key":     {second(wrap.NewPrivate(private)), "is a private key of a kind that does not unwrap (ed25519.PrivateKey), expected RSA, a NIST curve, ML-KEM or MLKEM768-X25519"},
		"a public key of a hybrid":  {second(wrap.NewPublic(otherHybrid.PublicKey())), "is an HPKE key of a kind that does not wrap, expected P-256, P-384, P-521, ML-KEM-768, ML-KEM-1024 or MLKEM768-X25519"},
		"a private key of a hybrid": {second(wrap.NewPrivate(otherHybrid)), "is an HPKE key of a kind that does not wrap, expected P-256, P-384, P-521, ML-KEM-768, ML-KEM-1024 or MLKEM768-X25519"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var input *wrap.InputError
			if !errors.As(test.err, &input) || input.Problem != test.want {
				t.Errorf("found the error %v, want %s", test.err, test.want)
			}
		})
	}
	if _, err := wrap.NewAES(random(20)); err == nil || err.Error() != "has 20 bytes, expected the 16, 24 or 32 bytes of an AES key" {
		t.Errorf("an AES key of 20 bytes: found the error %v", err)
	}
}

func TestAPublicKeyWrapsWhatThePrivateKeyUnwraps(t *testing.T) {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := wrap.NewPublic(private.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := wrap.NewPrivate(private)
	if err != nil {
		t.Fatal(err)
	}
	data := random(32)
	wrapped, err := sender.Wrap(algorithm.WrapHPKEP256, data, []byte("context"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := receiver.Unwrap(algorithm.WrapHPKEP256, wrapped, []byte("context")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("found the error %v", err)
	}
	if sender.Kind() != algorithm.P256WrappingKey {
		t.Errorf("found the kind %s", sender.Kind())
	}
}

// The examples of RFC 3394, section 4, and RFC 5649, section 6, for the key sizes of both.
func TestExamplesOfTheStandardsForAESKeyWrap(t *testing.T) {
	for sentence, test := range map[string]struct {
		with               algorithm.Wrapping
		kek, data, wrapped string
	}{
		"128 bits with 128 bits": {algorithm.WrapAESKW, "000102030405060708090A0B0C0D0E0F", "00112233445566778899AABBCCDDEEFF", "1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5"},
		"256 bits with 256 bits": {algorithm.WrapAESKW, "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F", "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21"},
		"20 bytes with 192 bits": {algorithm.WrapAESKWP, "5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8", "c37b7e6492584340bed12207808941155068f738", "138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a"},
	} {
		t.Run(sentence, func(t *testing.T) {
			key, err := wrap.NewAES(decode(t, test.kek))
			if err != nil {
				t.Fatal(err)
			}
			wrapped, err := key.Wrap(test.with, decode(t, test.data), nil)
			if err != nil || !bytes.Equal(wrapped, decode(t, test.wrapped)) {
				t.Errorf("found %x and the error %v", wrapped, err)
			}
		})
	}
}

func TestTheCipherOfAnAESKeyUnwrapsWhatItWrapped(t *testing.T) {
	key := newAES(t, 32)
	nonce, ciphertext, tag, err := key.Cipher().SealRandom(bytes.Repeat([]byte{7}, 32), []byte("context"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := key.Unwrap(algorithm.WrapAESGCM, slices.Concat(nonce, ciphertext, tag), []byte("context"))
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{7}, 32)) {
		t.Errorf("found %d bytes and the error %v", len(got), err)
	}
}

func FuzzUnwrap(f *testing.F) {
	kek, err := wrap.NewAES(make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	for _, with := range []algorithm.Wrapping{algorithm.WrapAESKW, algorithm.WrapAESKWP, algorithm.WrapAESGCM} {
		wrapped, err := kek.Wrap(with, make([]byte, 32), nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(with), wrapped)
	}
	f.Fuzz(func(t *testing.T, number uint8, wrapped []byte) {
		with := algorithm.Wrapping(number)
		key, err := kek.Unwrap(with, wrapped, nil)
		if err != nil {
			return
		}
		// If a text unwraps, wrapping the result gives the same text, because AES key wrap is deterministic.
		if again, err := kek.Wrap(with, key, nil); with != algorithm.WrapAESGCM && (err != nil || !bytes.Equal(again, wrapped)) {
			t.Errorf("a key of %d bytes unwrapped, and wraps to something else: %v", len(key), err)
		}
	})
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func second[T any](_ T, err error) error { return err }

func isInputError(err error, problem string) bool {
	var input *wrap.InputError
	return errors.As(err, &input) && strings.Contains(input.Problem, problem)
}
