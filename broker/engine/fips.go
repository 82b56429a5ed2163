// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto"
	"crypto/fips140"
	"crypto/rsa"
	"errors"
	"fmt"
)

// ValidatedModule is the version of the Go Cryptographic Module that the
// verdicts of package profile are about; it has CMVP certificate 5247.
const ValidatedModule = "v1.0.0"

// FIPSStatus says what this program computes with.
type FIPSStatus struct {
	// Module is the version of the Go Cryptographic Module, "latest" for the
	// one of the toolchain, which is not validated.
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

// Problem tells why nothing that this program computes is the validated
// module's work; nil where it is.
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

// unapprovedKey tells what is wrong with a key by FIPS 186-5 although its
// algorithm and size are right; empty where nothing is. The module takes such
// keys, but not as an approved service. private is nil where the key only
// verifies; one that is not in the broker's memory is judged by its public part.
func unapprovedKey(public crypto.PublicKey, private crypto.Signer) string {
	key, ok := public.(*rsa.PublicKey)
	if !ok {
		return ""
	}
	problem := func(format string, args ...any) string {
		return "an RSA key " + fmt.Sprintf(format, args...) + ", since FIPS 186-5 approves no other and this broker requires it"
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
