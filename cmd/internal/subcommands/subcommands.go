// SPDX-License-Identifier: Apache-2.0

// Package subcommands makes programs with several commands behave alike. Every command answers a
// wrong command line with one sentence and exit code 2. The broker and the operator do not use
// it.
package subcommands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// Run runs a program and returns the exit code. It prints one sentence about an error to stderr.
// outcome returns the exit code and the sentence for an error that is not about the command line.
// The sentence is empty if the output already says what is wrong. When ctx ends, reads from
// standard input end with an error.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer, outcome func(error) (exit int, sentence string)) int {
	root.SetArgs(args)
	root.SetIn(&input{ctx: ctx, from: stdin})
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return program.ExitOK
	case program.IsUsage(err):
		fmt.Fprintf(stderr, "%s: %v (see %[1]s --help)\n", command.CommandPath(), err)
		return program.ExitUsage
	}
	exit, sentence := outcome(err)
	if sentence != "" {
		fmt.Fprintf(stderr, "%s: %s\n", command.CommandPath(), sentence)
	}
	return exit
}

// Configure makes a root command return errors instead of printing them. Errors of flags
// become errors of the command line.
func Configure(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return program.Usagef("%v", err) })
	Only(root)
}

// Only is for a command that has only subcommands: it prints its help, and refuses
// arguments that name none of its subcommands.
func Only(parent *cobra.Command) {
	parent.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return program.Usagef("unknown command %q", args[0])
		}
		return nil
	}
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// NoArguments refuses arguments.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return program.Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// Strict makes cobra's commands help and completion refuse arguments that have no
// meaning.
func Strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		switch command.Name() {
		case "help":
			command.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return program.Usagef("unknown command %q", strings.Join(args, " "))
				}
				return nil
			}
		case "completion":
			command.Args = NoArguments
			command.RunE = root.RunE
			for _, shell := range command.Commands() {
				shell.Args = NoArguments
			}
		}
	}
}
