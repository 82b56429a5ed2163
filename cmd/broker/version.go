// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// versionCommand prints the version of the broker, and on the second line the
// cryptographic module. What it says about FIPS 140-3 holds for a broker that is started
// with the same environment and without flags.
func versionCommand(args []string, lookup func(string) (string, bool), stdout io.Writer) error {
	var c config
	if len(args) > 0 {
		return program.Usagef("version takes no arguments, found %q", args[0])
	}
	for _, s := range c.settings() {
		if text, ok := lookup(s.env); s.name == "require-fips" && ok && text != "" {
			if err := s.set(text); err != nil {
				return program.Usagef("invalid value %q of the environment variable %s: %v", text, s.env, err)
			}
		}
	}
	enforced := "not enforced"
	if c.requireFIPS {
		enforced = "enforced"
	}
	computing := engine.FIPS()
	_, err := fmt.Fprintf(stdout, "%s\nGo Cryptographic Module %s, FIPS 140-3 mode %s, %s\n",
		program.VersionLine("broker", version), computing.Module, computing.Mode, enforced)
	return err
}
