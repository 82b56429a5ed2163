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
	"strings"
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
  0  done, and nothing is wrong; a list may be empty or not
  1  something is wrong, and the output says what: a manifest is invalid or refused; what explain was asked about
     is not as it should be; a workload did not come up, or a restart was not confirmed; the cluster could not be
     asked, or what was looked for may not be seen
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
	strict(root)
	return root
}

// strict makes arguments that mean nothing an error of the command line in the
// commands that cobra adds, too.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		switch command.Name() {
		case "help":
			command.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return usagef("unknown command %q", strings.Join(args, " "))
				}
				return nil
			}
		case "completion":
			command.Args = noArguments
			command.RunE = root.RunE
			for _, shell := range command.Commands() {
				shell.Args = noArguments
			}
		}
	}
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}
