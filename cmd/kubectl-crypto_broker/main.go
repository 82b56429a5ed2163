// SPDX-License-Identifier: Apache-2.0

// Command kubectl-crypto_broker is the plugin `kubectl crypto-broker`. It shows which pods have a
// broker, which pods lack one, and which profiles each broker serves and why. It also restarts
// workloads, checks manifests without a cluster, checks the installation, and allows profiles
// that are withheld. See --help.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// name is the command line of the plugin.
const name = text.Plugin

func main() {
	os.Exit(run(program.Context(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code. Tests call it without a process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return subcommands.Run(ctx, newRoot(), args, stdin, stdout, stderr, func(err error) (exit int, sentence string) {
		var code codeError
		switch {
		case errors.As(err, &code):
			return int(code), "" // the output already has the reason
		case errors.Is(err, errFound):
			return program.ExitFailed, ""
		}
		return program.ExitFailed, apierror.Plain(err)
	})
}

// errFound means that a command worked and found something wrong.
var errFound = errors.New("something is wrong")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-crypto_broker",
		Short: "Shows which pods have a crypto broker and what it serves; restarts, injects, validates, explains, checks",
		Long: `Shows which pods have a crypto broker, which pods miss theirs, and which profiles each broker serves. It also
restarts workloads one at a time, injects brokers into manifests, validates manifests without a cluster, and
explains why a pod has a broker or has none. It checks whether the installation is sound, shows which profiles count
in a namespace, which cryptography is in use and what a change would break, allows profiles that are withheld, rotates
the signing key, and writes an archive for support.

Exit codes:
  0  done, and nothing is wrong; a list may be empty or not
  1  something is wrong, and the output says what: a manifest is invalid or refused; explain or check found a
     problem; diff found a profile that is withheld; a workload did not come up; nobody confirmed; the cluster could
     not be asked, or the user lacks a right to look
  2  the command line is wrong
  3  only what-if: calls would break
  4  only what-if and inventory: some brokers or uses are not known`,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	cluster := &cluster{}
	root.AddCommand(
		newPods(cluster), newMissing(cluster), newOutdated(cluster), newRestart(cluster), newExplain(cluster),
		newInject(cluster), newValidate(), newCheck(cluster), newVersion(cluster),
		newDashboard(cluster), newProfiles(cluster), newInventory(cluster), newWhatIf(cluster), newDiff(cluster), newAllow(cluster), newPromote(cluster), newAbort(cluster), newRotateKey(cluster), newBundle(cluster),
	)
	subcommands.Configure(root)
	subcommands.Strict(root)
	return root
}
