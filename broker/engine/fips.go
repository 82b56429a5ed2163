// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto"
	"crypto/fips140"
	"crypto/rsa"
	"errors"
	"fmt"
)

// ValidatedModule is the version of the Go Cryptographic Module that the verdicts of package
// profile are about. It has the CMVP certificate 5247.
const ValidatedModule = "v1.0.0"

// FIPSStatus is the cryptographic module of this program and its mode.
type FIPSStatus struct {
	// Module is the version of the Go Cryptographic Module. It is "latest" for the module
	// of the toolchain, which is not validated.
	Module string `json:"module"`
	// Mode is the mode of the module: "off", "on" or "only".
	Mode string `json:"mode"`
}

// FIPS returns the status, which never changes while a program runs.
func FIPS() FIPSStatus {
	s := FIPSStatus{Module: fips140.Version(), Mode: "off"}
	switch {
	case fips140.Enforced():
		s.Mode = "only"
	case fips140.Enabled():
		s.Mode = "on"
	}
	return s
}

// Problem returns why this program does not compute with the validated module in FIPS 140-3
// mode. It returns nil if it does.
func (s FIPSStatus) Problem() error {
	switch {
	case s.Module != ValidatedModule:
		return fmt.Errorf("this program has the version %q of the Go Cryptographic Module, expected the validated %s: build it with GOFIPS140=%s", s.Module, ValidatedModule, ValidatedModule)
	case s.Mode == "off":
		return errors.New("FIPS 140-3 mode is off, expected on: remove fips140 from the environment variable GODEBUG, or set it to fips140=on")
	default:
		return nil
	}
}

// UnapprovedKey returns why FIPS 186-5 does not approve a key whose algorithm and size are
// allowed. It is empty if the key is approved. The module accepts such keys, but does not
// count their use as an approved service. private is nil if there is only a public key. If the
// private key is not in the memory of the broker, only the public key is checked.
func UnapprovedKey(public crypto.PublicKey, private crypto.Signer) string {
	key, ok := public.(*rsa.PublicKey)
	if !ok {
		return ""
	}
	problem := func(format string, args ...any) string {
		return "an RSA key " + fmt.Sprintf(format, args...) + ", because this broker requires keys that FIPS 186-5 approves"
	}
	pair, _ := private.(*rsa.PrivateKey)
	switch {
	case key.E <= 1<<16:
		return problem("with the public exponent %d, expected more than 65536", key.E)
	case key.N.BitLen()%2 != 0:
		return problem("of %d bits, expected an even number", key.N.BitLen())
	case pair == nil:
		return ""
	case len(pair.Primes) != 2:
		return problem("of %d primes, expected 2", len(pair.Primes))
	case pair.Primes[0].BitLen() != pair.Primes[1].BitLen():
		return problem("of primes of %d and %d bits, expected two of one size", pair.Primes[0].BitLen(), pair.Primes[1].BitLen())
	}
	return ""
}
