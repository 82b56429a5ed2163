// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// checkFIPS returns an error if the broker must not serve with its cryptographic module.
func checkFIPS(computing engine.FIPSStatus, required bool) error {
	if computing.Mode == "only" {
		// Go has this mode for tests: code that is not approved returns errors or panics.
		// So does decryption with a given nonce, although it is approved.
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

// compileOptions returns the options to compile profiles with.
func (c *config) compileOptions() []profile.CompileOption {
	options := []profile.CompileOption{profile.Instance(c.instance)}
	if c.requireFIPS {
		options = append(options, profile.RequireFIPS())
	}
	return options
}
