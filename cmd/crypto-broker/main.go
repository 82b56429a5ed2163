// SPDX-License-Identifier: Apache-2.0

// Command crypto-broker is the command line of Crypto Broker: it calls a broker,
// checks profile files and tells what profiles are worth; see --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, which --help tells.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitUnavailable = 4
	exitNotValid    = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program less its process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	var failed *failure
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFound):
		return exitFailed // the output has said what
	case errors.Is(err, errNotValid):
		return exitNotValid // as well
	case errors.Is(err, errNotServing):
		return exitUnavailable // as well
	case errors.As(err, &failed):
		fmt.Fprintf(stderr, "%s: %s\n", command.CommandPath(), failed.message)
		return failed.exit
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "%s: %v (see %[1]s --help)\n", command.CommandPath(), err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "%s: %v\n", command.CommandPath(), err)
		return exitFailed
	}
}

// What means that a command worked, and that its output is no good news.
var (
	// errFound: problems were found.
	errFound = errors.New("problems were found")
	// errNotValid: a signature is not valid.
	errNotValid = errors.New("the signature is not valid")
	// errNotServing: a broker says that it does not serve.
	errNotServing = errors.New("the broker does not serve")
)

// usageError is an error of the command line.
type usageError struct{ message string }

// Error implements error.
func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "crypto-broker",
		Short: "Calls a Crypto Broker, checks profiles and tells what they are worth",
		Long: `Calls a Crypto Broker, checks profiles and tells what they are worth.

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
  3  the broker refused the request: the input, the key, or what the profile says
  4  no broker answered in time, or it does not serve
  5  the signature is not valid`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err.Error()} })
	root.AddCommand(
		newHashData(), newSignCertificate(), newEncryptData(), newDecryptData(), newSignData(), newVerifyData(),
		newHealth(), newBenchmark(), newFakeEndpoint(), newProfiles(), newVersion(),
	)
	onlyCommands(root)
	return root
}

// onlyCommands makes a command without one of its own an error that names them.
func onlyCommands(parent *cobra.Command) {
	parent.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("unknown command %q", args[0])
		}
		return nil
	}
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// arguments checks how many arguments a command has.
func arguments(low, high int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < low || high >= 0 && len(args) > high {
			return usagef("found %d arguments, expected %s", len(args), want)
		}
		return nil
	}
}
