// SPDX-License-Identifier: Apache-2.0

package wrapping_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of OpenTDF's clients
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

func encode(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// encodeMLKEM returns a private key of ML-KEM-768 with content in one of the forms of RFC 9935,
// section 6.
func encodeMLKEM(t testing.TB, content any, parameters string) string {
	t.Helper()
	inner, err := asn1.MarshalWithParams(content, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return encodeSeed(t, asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 4, 2}, inner)
}

// encodeXWing returns a private key of X-Wing.
func encodeXWing(t testing.TB, seed []byte) string {
	t.Helper()
	return encodeSeed(t, asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 62253, 25722}, seed)
}

func encodeSeed(t testing.TB, algorithm asn1.ObjectIdentifier, content []byte) string {
	t.Helper()
	der, err := asn1.Marshal(struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: algorithm}, content})
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func parse(t testing.TB, text string) wrapping.Key {
	t.Helper()
	key, err := wrapping.ParseKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKeysThatCannotUnwrapAreRefused(t *testing.T) {
	_, signing, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := rsa.GenerateKey(rand.Reader, 2056)
	if err != nil {
		t.Fatal(err)
	}
	seed := make([]byte, mlkem.SeedSize)
	for name, c := range map[string]struct{ text, part string }{
		"nothing":                    {"", "no complete PEM block"},
		"a key for signatures":       {encode(t, signing), "is a key for signatures only"},
		"an RSA key of another size": {encode(t, odd), "is an RSA key of 2056 bits, expected 2048, 3072 or 4096"},
		"P-224":                      {encode(t, newEC(t, elliptic.P224())), "expected P-256, P-384 or P-521"},
		"ML-KEM without its seed":    {encodeMLKEM(t, make([]byte, 2400), ""), "without its seed"},
		"ML-KEM with a short seed":   {encodeMLKEM(t, seed[1:], "tag:0"), "without its seed"},
		"X-Wing with a long seed":    {encodeXWing(t, seed), "is an X-Wing key of 64 bytes, expected its seed of 32"},
	} {
		if _, err := wrapping.ParseKey([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: found %v, expected %q", name, err, c.part)
		}
	}
}

func TestAnMLKEMKeyIsReadInBothFormsWithASeed(t *testing.T) {
	seed := make([]byte, mlkem.SeedSize)
	_, _ = rand.Read(seed)
	both := struct{ Seed, Expanded []byte }{seed, make([]byte, 2400)}
	alone := parse(t, encodeMLKEM(t, seed, "tag:0"))
	if other := parse(t, encodeMLKEM(t, both, "")); other.Public() != alone.Public() || other.Algorithm() != wrapping.MLKEM768 {
		t.Error("the two forms give two public keys")
	}
}

func TestAKeyIsReadAfterAByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{
		"EC": encode(t, newEC(t, elliptic.P256())), "ML-KEM": encodeMLKEM(t, make([]byte, mlkem.SeedSize), "tag:0"), "X-Wing": encodeXWing(t, make([]byte, 32)),
	} {
		key, err := wrapping.ParseKey([]byte("\ufeff" + text))
		if err != nil || key.Public() != parse(t, text).Public() {
			t.Errorf("%s: found another key, or the error %v", name, err)
		}
	}
}

func TestARecipientIsAKeyOrItsCertificate(t *testing.T) {
	key := newEC(t, elliptic.P384())
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private := parse(t, encode(t, key))
	for name, text := range map[string]string{
		"a public key":  private.Public(),
		"a certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
	} {
		recipient, err := wrapping.NewRecipient(text, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wrapped, err := recipient.Wrap([]byte("data key"))
		if err != nil {
			t.Fatal(err)
		}
		found, err := private.Unwrap(context.Background(), wrapping.Wrapped{Type: wrapping.EC, Key: wrapped, Ephemeral: recipient.SessionKey()})
		if err != nil || string(found) != "data key" {
			t.Errorf("%s: found %q, %v", name, found, err)
		}
	}
}

func TestRecipientsThatNobodyShouldUseAreRefused(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki := func(key any) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	for name, c := range map[string]struct{ text, part string }{
		"no PEM":                {"key", "has no complete PEM block"},
		"RSA of 1024 bits":      {spki(&small.PublicKey), "is an RSA key of 1024 bits, expected 2048 to 4096"},
		"P-224":                 {spki(newEC(t, elliptic.P224()).Public()), "is on another curve"},
		"a key for signatures":  {spki(public), "is on another curve or of another algorithm"},
		"X-Wing of low order":   {xwingOfLowOrder(t), "is damaged or of an unknown algorithm"},
		"a damaged key":         {"-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n", "is damaged"},
		"a damaged certificate": {"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", "is a damaged certificate"},
	} {
		if _, err := wrapping.NewRecipient(c.text, false); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: found %v, expected %q", name, err, c.part)
		}
	}
}

// xwingOfLowOrder returns a public key of X-Wing whose part on X25519 gives everybody the same secret.
func xwingOfLowOrder(t *testing.T) string {
	t.Helper()
	block, _ := pem.Decode([]byte(parse(t, encodeXWing(t, make([]byte, 32))).Public()))
	clear(block.Bytes[len(block.Bytes)-32:])
	return string(pem.EncodeToMemory(block))
}

func TestAnRSAKeyOfAClientThatCannotBeUsedIsRefused(t *testing.T) {
	modulus := new(big.Int).SetBit(big.NewInt(1), 2047, 1)
	for name, key := range map[string]*rsa.PublicKey{
		"an even modulus":  {N: new(big.Int).Add(modulus, big.NewInt(1)), E: 65537},
		"the exponent 1":   {N: modulus, E: 1},
		"the exponent 2":   {N: modulus, E: 2},
		"a large exponent": {N: modulus, E: 1<<40 | 1},
	} {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		if _, err := wrapping.NewRecipient(text, false); err == nil || !strings.Contains(err.Error(), "cannot be used") {
			t.Errorf("%s: found %v, expected an error", name, err)
		}
	}
}

// A number that begins with zeros is the same without them, but the ciphertext is as long as the modulus (RFC 8017, section 7.1.2).
func TestAnRSACiphertextWithoutItsZerosInFrontIsRefused(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, dataKey := parse(t, encode(t, private)), bytes.Repeat([]byte{1}, 32)
	var ciphertext []byte
	for ciphertext == nil || ciphertext[0] != 0 {
		if ciphertext, err = rsa.EncryptOAEP(sha1.New(), rand.Reader, &private.PublicKey, dataKey, nil); err != nil {
			t.Fatal(err)
		}
	}
	for sentence, test := range map[string]struct {
		ciphertext []byte
		want       []byte
	}{"as it is": {ciphertext, dataKey}, "without a zero": {ciphertext[1:], nil}, "with one more": {append([]byte{0}, ciphertext...), nil}, "empty": {nil, nil}} {
		found, err := key.Unwrap(t.Context(), wrapping.Wrapped{Type: wrapping.RSA, Key: test.ciphertext})
		if !bytes.Equal(found, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("%s: found %x and the error %v", sentence, found, err)
		}
	}
}

func TestOnlyTheHMACOfThePolicyBinds(t *testing.T) {
	// RFC 4231, section 4.3: the key "Jefe" and the data "what do ya want for nothing?".
	const (
		asBytes = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="
		asHex   = "NWJkY2MxNDZiZjYwNzU0ZTZhMDQyNDI2MDg5NTc1Yzc1YTAwM2YwODlkMjczOTgzOWRlYzU4Yjk2NGVjMzg0Mw=="
	)
	key, policy := []byte("Jefe"), "what do ya want for nothing?"
	for name, c := range map[string]struct {
		policy, binding string
		binds           bool
	}{
		"as bytes":       {policy, asBytes, true},
		"as digits":      {policy, asHex, true},
		"another policy": {policy + " ", asBytes, false},
		"empty":          {policy, "", false},
		"no base64":      {policy, "?" + asBytes[1:], false},
		"shorter":        {policy, asBytes[:40], false},
		"no digits":      {policy, "enp6" + asHex[4:], false},
	} {
		if wrapping.Binds(key, c.policy, c.binding) != c.binds {
			t.Errorf("%s: expected %t", name, c.binds)
		}
	}
}

// FuzzUnwrap looks for wrapped keys that cause a panic, or that can be unwrapped although nobody has wrapped them for the key.
func FuzzUnwrap(f *testing.F) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.Fatal(err)
	}
	keys := []wrapping.Key{parse(f, encode(f, rsaKey)), parse(f, encode(f, newEC(f, elliptic.P256()))), parse(f, encodeMLKEM(f, bytes.Repeat([]byte{7}, 64), "tag:0")), parse(f, encodeXWing(f, bytes.Repeat([]byte{7}, 32)))}
	other := parse(f, encode(f, newEC(f, elliptic.P256()))).Public()
	f.Add([]byte{}, "")
	f.Add([]byte{0x30, 0}, other)
	f.Add(make([]byte, 256), other)
	f.Add(append([]byte{0x30, 0x82, 0x04, 0x60, 0x80, 0x82, 0x04, 0x40}, make([]byte, 1200)...), "-----BEGIN PUBLIC KEY-----")
	f.Fuzz(func(t *testing.T, wrapped []byte, ephemeral string) {
		for _, key := range keys {
			for _, kind := range append(wrapping.Types, "") {
				if found, err := key.Unwrap(context.Background(), wrapping.Wrapped{Type: kind, Key: wrapped, Ephemeral: ephemeral}); err == nil {
					t.Errorf("%s has opened %x as %s: %x", key.Algorithm(), wrapped, kind, found)
				}
			}
		}
		if recipient, err := wrapping.NewRecipient(ephemeral, false); err == nil {
			if _, err := recipient.Wrap(make([]byte, 32)); err != nil {
				t.Error(fmt.Errorf("a key that was accepted cannot be used: %w", err))
			}
		}
	})
}
