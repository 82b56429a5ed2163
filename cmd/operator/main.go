// SPDX-License-Identifier: Apache-2.0

// Command operator is the control plane of Crypto Broker in a Kubernetes cluster: it injects
// brokers into pods that ask for one, distributes CryptoProfiles to the brokers, and reports
// which profiles they serve. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code. Tests call it without a process.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Fprintln(stdout, program.VersionLine("operator", version))
		return program.ExitOK
	}
	if len(args) == 1 && args[0] == "check" {
		namespace, _ := lookup("POD_NAMESPACE")
		if err := checkInstallation(ctx, namespace, stdout); err != nil {
			program.LastSentence(stderr, "operator: %v\n", err)
			return program.ExitFailed
		}
		return program.ExitOK
	}
	config, err := parse(args, lookup)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, usage())
		return program.ExitOK
	}
	if err != nil {
		program.LastSentence(stderr, "operator: %v\nSee operator --help.\n", err)
		return program.ExitUsage
	}
	if err := operate(ctx, config, stderr); err != nil {
		program.LastSentence(stderr, "operator: %v\n", err)
		return program.ExitFailed
	}
	return program.ExitOK
}

func usage() string {
	return `Injects brokers into pods, distributes CryptoProfiles to them, and reports which profiles they serve.

Usage:
  operator [flags]    run until SIGTERM, SIGINT or SIGHUP
  operator check      ask the API server whether the webhooks answer, and end; helm test runs this
  operator version    print the version

The cluster comes from the pod's service account, or else from the file that the environment variable
KUBECONFIG names. A wrong value ends the program with exit code 2 and a sentence that says what was expected.

Flags:
` + (&config{}).flags().FlagUsagesWrapped(program.HelpWidth)
}
