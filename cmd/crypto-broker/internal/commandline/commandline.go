// SPDX-License-Identifier: Apache-2.0

// Package commandline has code that the commands of crypto-broker share, for exit codes,
// arguments, flags with a few values, and forms of output.
package commandline

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// Further exit codes, which --help names.
const (
	ExitRefused     = 3
	ExitUnavailable = 4
	ExitNotValid    = 5
)

// StandardInput is the argument that means standard input.
const StandardInput = "-"

// ErrFound is the error of a command that worked and has printed problems.
var ErrFound = errors.New("problems were found")

// Arguments checks how many arguments a command has. high is -1 for any number.
func Arguments(low, high int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < low || high >= 0 && len(args) > high {
			return program.Usagef("found %d arguments, expected %s", len(args), want)
		}
		return nil
	}
}
