// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/check"
)

func newCheck(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether the installation of the operator is sound",
		Long: `Checks whether the installation of the operator is sound. It prints a line for each question, with the answer and,
if something is wrong, what to do.

  OK        it is as it should be
  WARNING   brokers are injected and profiles are served, and somebody should look at it
  FAILED    it does not work
  SKIPPED   the command cannot tell, because the right is missing that the line names, or for the reason that it names

Whether the API server reaches the operator is tried by dry runs: a pod that asks for a broker has to get one, and an
invalid profile has to be refused. They are created in the namespace of -n, which must not be left out by the operator.
The command changes nothing. It reads the metadata of the Secret with the signing keys, and never what it contains.

The exit code is 1 if a line says FAILED or SKIPPED, else 0.`,
		Example: `  ` + name + ` check
  ` + name + ` check -n shop -o json`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	output := outputFlag(cmd, "table", "json", "yaml")
	operatorNamespace := cluster.operatorFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := output.check(); err != nil {
			return err
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		if _, err := client.Discovery().ServerVersion(); err != nil {
			return err // otherwise each line would repeat this
		}
		checker := &check.Checker{Client: client, Version: program.Version(version), Namespace: namespace, OperatorNamespace: *operatorNamespace}
		findings, err := checker.Run(cmd.Context())
		if err != nil {
			return err
		}
		done, err := output.forPrograms(cmd.OutOrStdout(), map[string]any{"checks": findings})
		if !done {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			for _, f := range findings {
				fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, f.Found)
			}
			err = table.Flush()
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(findings, func(f check.Finding) bool { return f.State == check.Failed || f.State == check.Skipped }) {
			return errFound
		}
		return nil
	}
	return cmd
}
