// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdh"
	"crypto/fips140"
	"crypto/hpke"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/segment"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
)

// inOnlyMode is set in the process where Go refuses what is not approved.
const inOnlyMode = "CONFORMANCE_IN_ONLY_MODE"

func TestGoRefusesWhatTheRegistryDoesNotCallApproved(t *testing.T) {
	if os.Getenv(inOnlyMode) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inOnlyMode+"=yes", "GODEBUG=fips140=only")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	if !fips140.Enforced() {
		t.Fatal("Go accepts what is not approved")
	}
	judge := func(name string, approval algorithm.Approval, err error) {
		t.Logf("%s: %v", name, err)
		switch {
		case approval == algorithm.Approved && err != nil:
			t.Errorf("%s is approved, and Go refuses it: %v", name, err)
		case approval == algorithm.NotInModule && fips140.Version() != engine.ValidatedModule:
			// Other versions of the module may have it.
		case approval != algorithm.Approved && err == nil:
			t.Errorf("%s is not approved, and Go accepts it", name)
		}
	}
	for _, name := range algorithm.Wrappings() {
		with, _ := algorithm.FindWrapping(name)
		if with == algorithm.WrapAESKW || with == algorithm.WrapAESKWP {
			continue // Go accepts single blocks of AES, and does not count them as approved
		}
		judge(name, with.Approval(), wrapWithNewKey(with))
	}
	_, err := segment.NewEncrypter(io.Discard, make([]byte, segment.KeySize), nil)
	judge(algorithm.AES256GCMHKDF64KB.String(), algorithm.AES256GCMHKDF64KB.Approval(), err)
}

func wrapWithNewKey(with algorithm.Wrapping) error {
	var key wrap.Wrapper
	var err error
	if with.Key() == algorithm.AESWrappingKey {
		key, err = wrap.NewAES(make([]byte, 32))
	} else {
		var private crypto.PrivateKey
		if private, err = newPrivateKey(with.Key()); err == nil {
			key, err = wrap.NewPrivate(private)
		}
	}
	if err != nil {
		return err
	}
	_, err = key.Wrap(with, make([]byte, 32), nil)
	return err
}

func newPrivateKey(kind algorithm.WrappingKey) (crypto.PrivateKey, error) {
	switch kind {
	case algorithm.RSAWrappingKey:
		return rsa.GenerateKey(rand.Reader, 2048)
	case algorithm.P256WrappingKey:
		return ecdh.P256().GenerateKey(rand.Reader)
	case algorithm.P384WrappingKey:
		return ecdh.P384().GenerateKey(rand.Reader)
	case algorithm.P521WrappingKey:
		return ecdh.P521().GenerateKey(rand.Reader)
	case algorithm.MLKEM768WrappingKey:
		return mlkem.GenerateKey768()
	case algorithm.MLKEM1024WrappingKey:
		return mlkem.GenerateKey1024()
	case algorithm.MLKEMX25519WrappingKey:
		return hpke.MLKEM768X25519().GenerateKey()
	default:
		return nil, fmt.Errorf("there is no key of the kind %s", kind)
	}
}
