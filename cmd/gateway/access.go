// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/accessexplain"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regopolicy"
)

// accessExplainFlags returns the flags of gateway access explain.
func accessExplainFlags(o *accessexplain.Options) *pflag.FlagSet {
	flags := program.Flags("gateway access explain")
	flags.StringVarP(&o.Output, "output", "o", accessexplain.Text, "text or json")
	flags.StringVar(&o.Request, "request", "", accessexplain.RequestUsage)
	return flags
}

// runAccess is gateway access. It returns the exit code.
func runAccess(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	options := accessexplain.Options{Modules: regopolicy.Compile}
	flags := accessExplainFlags(&options)
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, accessUsage())
		return program.ExitOK
	}
	switch {
	case err != nil:
		err = program.Usagef("%v", err)
	case flags.NArg() < 2 || flags.Arg(0) != "explain":
		err = program.Usagef("found the arguments %q, expected explain and at least one file of policies", flags.Args())
	case options.Output != accessexplain.Text && options.Output != accessexplain.JSON:
		err = program.Usagef("--output is %q, expected %s or %s", options.Output, accessexplain.Text, accessexplain.JSON)
	default:
		options.Policies = flags.Args()[1:]
		err = accessexplain.Run(options, stdin, stdout)
	}
	switch {
	case err == nil:
		return program.ExitOK
	case errors.Is(err, accessexplain.ErrDenied):
		return accessexplain.ExitDenied
	case program.IsUsage(err):
		fmt.Fprintf(stderr, "gateway access: %v\nSee gateway access --help.\n", err)
		return program.ExitUsage
	default:
		fmt.Fprintf(stderr, "gateway access: %v\n", err)
		return program.ExitFailed
	}
}

func accessUsage() string {
	return accessexplain.Help + `

Policies may be in Rego, whether a service permits it or not.

Usage:
  gateway access explain --request FILE POLICY... [flags]

Flags:
` + accessExplainFlags(&accessexplain.Options{}).FlagUsagesWrapped(program.HelpWidth)
}
