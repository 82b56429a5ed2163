// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// checkFIPS refuses to serve with cryptography that is not what was asked for.
func checkFIPS(computing engine.FIPSStatus, required bool) error {
	if computing.Mode == "only" {
		// Go makes that mode for tests: code that is not approved ends in errors and
		// panics, and decryption with a given nonce, which is approved, is one of them.
		return errors.New("GODEBUG has fips140=only, expected fips140=on: with it Go fails approved operations as well, while --require-fips refuses those that are not approved, one by one")
	}
	if !required {
		return nil
	}
	if err := computing.Problem(); err != nil {
		return fmt.Errorf("--require-fips: %w", err)
	}
	return nil
}

// compileOptions are those of the profiles that are served.
func (c *config) compileOptions() []profile.CompileOption {
	if c.requireFIPS {
		return []profile.CompileOption{profile.RequireFIPS()}
	}
	return nil
}
