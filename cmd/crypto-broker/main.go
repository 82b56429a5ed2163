// SPDX-License-Identifier: Apache-2.0

// Command crypto-broker is the command line of Crypto Broker. It calls a broker,
// checks profile files and shows how strong profiles are. See --help.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/profiles"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/accessexplain"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
)

func main() {
	os.Exit(run(program.Context(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code. Tests call it without a process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return subcommands.Run(ctx, newRoot(), withTwoDashes(args), stdin, stdout, stderr, outcome)
}

// outcome returns the exit code for an error, and a sentence about the error. The sentence is
// empty if the output already says what is wrong.
func outcome(err error) (exit int, sentence string) {
	var failed *connection.Failure
	switch {
	case errors.Is(err, commandline.ErrFound):
		return program.ExitFailed, ""
	case errors.Is(err, errNotValid):
		return commandline.ExitNotValid, ""
	case errors.Is(err, accessexplain.ErrDenied):
		return accessexplain.ExitDenied, ""
	case errors.Is(err, errNotServing):
		return commandline.ExitUnavailable, ""
	case errors.As(err, &failed):
		return failed.Exit, failed.Message
	default:
		return program.ExitFailed, err.Error()
	}
}

// Errors of commands that worked and printed a bad result.
var (
	// errNotValid means that a signature is not valid.
	errNotValid = errors.New("the signature is not valid")
	// errNotServing means that a broker reports that it does not serve.
	errNotServing = errors.New("the broker does not serve")
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "crypto-broker",
		Short: "Calls a Crypto Broker, checks profiles and shows how strong they are",
		Long: `Calls a Crypto Broker, checks profiles and shows how strong they are.

Commands that call a broker wait for its socket, for --timeout at most. Without
--output they print a log of JSON lines, one of which has the result, as released
command lines do; CRYPTO_BROKER_LOG_LEVEL, _LOG_FORMAT (json, text) and
_LOG_OUTPUT (stdout, stderr) change that log. --output json prints nothing but
one JSON object a call, and --output text nothing but the result.

Exit codes:
  0  done, and nothing is wrong
  1  something failed that has no code of its own: a file could not be read, a
     profile has problems; the output says what
  2  the command line is wrong
  3  the broker refused the request: the input, the key, or what the profile says;
     or policies deny access to a data key
  4  no broker answered in time, or it does not serve
  5  the signature is not valid`,
	}
	root.AddCommand(newHealth(), newBenchmark(), newFakeEndpoint(), profiles.New(), newAudit(), newAccess(), newKMIPSpeed(), newSession(), newVersion())
	for _, newOperation := range operations {
		root.AddCommand(newOperation())
	}
	subcommands.Configure(root)
	return root
}

// operations are functions that make the commands for operations.
var operations []func() *cobra.Command

// operation adds the command of an operation. The file of each command calls it when the
// program starts.
func operation(newCommand func() *cobra.Command) func() *cobra.Command {
	operations = append(operations, newCommand)
	return newCommand
}
