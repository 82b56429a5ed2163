// SPDX-License-Identifier: Apache-2.0

// Command kubectl-crypto_broker is the plugin `kubectl crypto-broker`: it tells
// which pods have a broker, which miss it, what each serves and why, restarts
// workloads, and works on manifests without a cluster; see --help.
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
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// name is how people call the plugin.
const name = "kubectl crypto-broker"

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
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFound):
		return exitFailed // the output has said what
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "%s: %v (see %[1]s --help)\n", command.CommandPath(), err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "%s: %s\n", command.CommandPath(), plain(err))
		return exitFailed
	}
}

// errFound means that a command worked and found something wrong.
var errFound = errors.New("something is wrong")

// usageError is an error of the command line.
type usageError struct{ message string }

// Error implements error.
func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-crypto_broker",
		Short: "Tells which pods have a crypto broker and what it serves; restarts, injects, validates, explains",
		Long: `Tells which pods have a crypto broker, which miss theirs and what each broker serves; restarts workloads
one at a time; injects brokers into manifests and validates manifests without a cluster; and explains why a
pod has a broker or has none.

Exit codes:
  0  done, and nothing is wrong
  1  something is wrong, and the output says what: a manifest is invalid or refused, a workload did not come
     up, the cluster could not be asked
  2  the command line is wrong`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err.Error()} })
	cluster := &cluster{}
	root.AddCommand(
		newPods(cluster), newMissing(cluster), newOutdated(cluster), newRestart(cluster), newExplain(cluster),
		newInject(cluster), newValidate(), newVersion(),
	)
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("unknown command %q", args[0])
		}
		return nil
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return root
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}
