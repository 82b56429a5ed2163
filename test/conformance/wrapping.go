// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// The vectors of this file and of hpke.go and stream.go call the packages of the broker,
// because operations choose data keys and nonces themselves.
const (
	wrapping   = "wrap keys"
	unwrapping = "unwrap keys"
	deriving   = "derive keys"
)

// addKeyWrap returns the set of AES key wrap with or without padding.
func addKeyWrap(with algorithm.Wrapping) set {
	return func(p *plan, file string, _ wycheproofGroup, test wycheproofTest) error {
		if test.Message == nil {
			return errors.New("found no message")
		}
		name := fmt.Sprintf("%s with %d bits", with, 8*len(test.Key))
		p.add(row{wrapping, name, fromWycheproof}, test.name(file), inProcess(func() verdict { return judgeKeyWrap(with, test) }))
		return nil
	}
}

// judgeKeyWrap wraps and unwraps. Key wrap gives the same result for the same key each time.
func judgeKeyWrap(with algorithm.Wrapping, test wycheproofTest) verdict {
	key, err := wrap.NewAES(test.Key)
	if err != nil {
		return failed("the wrapping key %v", err)
	}
	found, unwrapErr := key.Unwrap(with, test.Ciphertext, nil)
	if unwrapErr != nil && !errors.Is(unwrapErr, wrap.ErrUnwrap) {
		return failed("unwrap: %v", unwrapErr)
	}
	if test.Result == resultInvalid {
		if unwrapErr == nil {
			return failed("an invalid key unwraps")
		}
		return passed()
	}
	wrapped, err := key.Wrap(with, *test.Message, nil)
	if reason := otherSize(len(*test.Message)); reason != "" {
		return judgeInputRefusal(err, unwrapErr, reason)
	}
	if err != nil || unwrapErr != nil {
		return failed("wrap: %v, unwrap: %v", err, unwrapErr)
	}
	return first(judgeEqual("the wrapped key", wrapped, test.Ciphertext), judgeEqual("the key", found, *test.Message))
}

// otherSize returns why the broker does not wrap keys of a size, and nothing if it does.
func otherSize(size int) string {
	if size < wrap.MinSize {
		return fmt.Sprintf("a key of less than %d bytes", wrap.MinSize)
	}
	return ""
}

func judgeInputRefusal(wrapErr, unwrapErr error, reason string) verdict {
	var input *wrap.InputError
	if !errors.As(wrapErr, &input) || !errors.Is(unwrapErr, wrap.ErrUnwrap) {
		return failed("wrap: %v, unwrap: %v, expected: %s", wrapErr, unwrapErr, reason)
	}
	return refused(reason)
}

// addOAEP adds a decryption by RSA-OAEP.
func addOAEP(p *plan, file string, group wycheproofGroup, test wycheproofTest) error {
	if test.Message == nil {
		return errors.New("found no message")
	}
	name := "rsa-oaep-" + strings.ToLower(group.SHA)
	at := row{unwrapping, name, fromWycheproof}
	if group.SHA != group.MGFSHA {
		p.leave(at, "a mask of RSA-OAEP by another digest than the digest of the label")
		return nil
	}
	p.addSome(5, at, test.name(file), inProcess(func() verdict { return judgeOAEP(name, group, test) }))
	return nil
}

func judgeOAEP(name string, group wycheproofGroup, test wycheproofTest) verdict {
	with, known := algorithm.FindWrapping(name)
	if !known {
		return refused("there is no algorithm " + name)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(group.PrivateKeyPKCS8)
	if err != nil {
		return failed("the private key: %v", err)
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return failed("the private key is a %T", parsed)
	}
	key, err := wrap.NewPrivate(private)
	if bits := private.N.BitLen(); bits < 2048 {
		if err == nil {
			return failed("an RSA key of %d bits was not refused", bits)
		}
		return refused("an RSA key of less than 2048 bits")
	}
	if unapproved := engine.UnapprovedKey(private.Public(), private); unapproved != "" {
		if err == nil {
			return failed("%s was not refused", unapproved)
		}
		return refused("an RSA key that FIPS 186-5 does not approve")
	}
	if err != nil {
		return failed("the key %v", err)
	}
	found, err := key.Unwrap(with, test.Ciphertext, test.Label)
	if err != nil && !errors.Is(err, wrap.ErrUnwrap) {
		return failed("unwrap: %v", err)
	}
	switch reason := otherSize(len(*test.Message)); {
	case test.Result == resultInvalid && err != nil:
		return passed()
	case test.Result == resultInvalid:
		return failed("an invalid key unwraps")
	case reason != "" && err != nil:
		return refused(reason)
	case reason != "":
		return failed("unwrapped %s", reason)
	case err != nil:
		return failed("unwrap: %v", err)
	}
	again, err := key.Wrap(with, found, test.Label)
	if err != nil {
		return failed("wrap: %v", err)
	}
	twice, err := key.Unwrap(with, again, test.Label)
	if err != nil {
		return failed("unwrap what was wrapped: %v", err)
	}
	return first(judgeEqual("the key", found, *test.Message), judgeEqual("the key that was wrapped again", twice, *test.Message))
}

// addHKDF adds a derivation by the HKDF with which streams derive their keys.
func addHKDF(p *plan, file string, _ wycheproofGroup, test wycheproofTest) error {
	p.add(row{deriving, "hkdf-sha-256", fromWycheproof}, test.name(file), inProcess(func() verdict {
		key, err := hkdf.Key(sha256.New, test.KeyMaterial, test.Salt, string(test.Info), test.Size)
		if (err != nil) != (test.Result == resultInvalid) {
			return failed("%v", err)
		}
		if err == nil && !bytes.Equal(key, test.OutputKey) {
			return judgeEqual("the key", key, test.OutputKey)
		}
		return passed()
	}))
	return nil
}

// inProcess returns the run of a vector that needs no broker.
func inProcess(judge func() verdict) func(context.Context, *wire.Client) verdict {
	return func(context.Context, *wire.Client) verdict { return judge() }
}
