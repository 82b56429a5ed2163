// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// versionCommand prints the version of the broker, on the second line the module that computes, and on the third the module of TLS.
func versionCommand(args []string, lookup func(string) (string, bool), stdout io.Writer) error {
	if len(args) > 0 {
		return program.Usagef("version takes no arguments, found %q", args[0])
	}
	computing, connecting, err := modules(lookup)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s\nTLS of connections to others: %s\n", program.VersionLine("broker", version), computing, connecting)
	return err
}

// fipsCommand prints which cryptographic modules the broker uses for operations and for TLS.
func fipsCommand(args []string, lookup func(string) (string, bool), stdout io.Writer) error {
	if len(args) > 0 {
		return program.Usagef("fips takes no arguments, found %q", args[0])
	}
	computing, connecting, err := modules(lookup)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "operations, sessions and signatures of audit records: %s\nTLS of connections to others: %s\n", computing, connecting)
	return err
}

// modules returns the descriptions of the module that computes and of the module of TLS. They
// hold for a broker that is started with the same environment and without flags.
func modules(lookup func(string) (string, bool)) (computing, connecting string, err error) {
	var c config
	for _, s := range c.settings() {
		if s.name != contract.RequireFIPSFlag && s.name != tlsProviderFlag {
			continue
		}
		text, ok := lookup(s.env)
		if !ok || text == "" {
			text = s.initial
		}
		if text == "" {
			continue
		}
		if err := s.set(text); err != nil {
			return "", "", program.Usagef("invalid value %q of the environment variable %s: %v", text, s.env, err)
		}
	}
	if err := tlsprovider.Use(c.tlsProvider, false); err != nil {
		return "", "", err
	}
	enforced := "not enforced"
	if c.requireFIPS {
		enforced = "enforced"
	}
	state := engine.FIPS()
	return fmt.Sprintf("Go Cryptographic Module %s, FIPS 140-3 mode %s, %s", state.Module, state.Mode, enforced), tlsprovider.Current().String(), nil
}
