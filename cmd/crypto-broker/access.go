// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/accessexplain"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
)

func newAccess() *cobra.Command {
	cmd := &cobra.Command{Use: "access", Short: "Try policies of the key access service"}
	cmd.AddCommand(newAccessExplain())
	subcommands.Only(cmd)
	return cmd
}

func newAccessExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "explain --request FILE POLICY...",
		Short:   "Show what policies decide about a request for a data key, and why",
		Long:    accessexplain.Help + "\n\nPolicies in Rego are for gateway access explain, which has the same flags.",
		Example: `  crypto-broker access explain --request request.json policies/*.yaml`,
		Args:    commandline.Arguments(1, -1, "at least one file of policies"),
	}
	output := commandline.ChoiceFlag(cmd, "output", "o", "text or json", accessexplain.Text, accessexplain.JSON)
	file := cmd.Flags().String("request", "", accessexplain.RequestUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		options := accessexplain.Options{Request: *file, Output: output.Value, Policies: args, Modules: noModules}
		return accessexplain.Run(options, cmd.InOrStdin(), cmd.OutOrStdout())
	}
	return cmd
}

// noModules implements [accesspolicy.CompileModule].
func noModules(string) (accesspolicy.Module, error) {
	return accesspolicy.Module{}, errors.New("found a module in Rego, which only the program of the key gateway has: use gateway access explain, with the same flags")
}
