// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
)

// noteMark is the beginning of messages on standard error that are not part of the answer.
const noteMark = "note: "

func newPods(cluster *cluster) *cobra.Command {
	return listCommand(cluster, &cobra.Command{
		Use:   "pods [NAME...]",
		Short: "List pods with what their broker serves",
		Long: `Lists the pods that have a broker or miss theirs, with what each broker says that it serves.

  BROKER    current   the broker that a new pod would get now (tried by creating a pod as a dry run)
            outdated  another broker: restart the workload when it suits
            present   there is a broker; what a new pod would get could not be found out
            missing   there is none, though the pod asks for one and its namespace is not left out
            none      there is none and none is wanted (with --all)
  SET       updated   the broker serves the namespace's set of profiles
            partial   it serves this set without profiles that it can't read
            behind    it serves an older set
            refused   it refuses the namespace's set and serves the one before; explain says why
            starting  it has read no set yet
            unknown   it could not be asked; -o wide says why

A broker is asked through the API server's proxy, which needs the right to get pods/proxy.`,
		Example: `  ` + name + ` pods
  ` + name + ` pods -A -o wide
  ` + name + ` pods -l app=orders -o json`,
	}, "", true)
}

func newMissing(cluster *cluster) *cobra.Command {
	return listCommand(cluster, &cobra.Command{
		Use:   "missing",
		Short: "List pods that should have a broker and have none",
		Long: `Lists pods that ask for a broker and have none: they were created while the operator could not be called,
or before the annotation or the label of their namespace was there. To get a broker, restart the workload. Pods in
namespaces that the operator's webhooks or policies leave out are not listed. If you may not read webhooks and
policies, a note says so.`,
		Example: `  ` + name + ` missing -A
  ` + name + ` restart --missing -n shop`,
		Args: subcommands.NoArguments,
	}, brokers.Missing, false)
}

func newOutdated(cluster *cluster) *cobra.Command {
	return listCommand(cluster, &cobra.Command{
		Use:   "outdated",
		Short: "List pods whose broker differs from the broker that a new pod would get",
		Long: `Lists pods whose broker has another image or other settings than a new pod would get now, as after an upgrade
of the operator. They go on working. To get the new broker, restart the workload.

The command creates a pod as a dry run to find out what a new pod would get. That needs the right to create pods.`,
		Example: `  ` + name + ` outdated -A
  ` + name + ` restart --outdated -n shop`,
		Args: subcommands.NoArguments,
	}, brokers.Outdated, false)
}

// listCommand returns a command that lists pods: all of them, or only those in one state.
func listCommand(cluster *cluster, cmd *cobra.Command, only string, all bool) *cobra.Command {
	cluster.flags(cmd, true)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if all {
		cmd.ValidArgsFunction = cluster.complete(podNames)
	}
	output := outputFlag(cmd, "table", "wide", "json", "yaml")
	selector := cmd.Flags().StringP("selector", "l", "", "label `selector` of pods, such as app=orders")
	var withNone *bool
	if all {
		withNone = cmd.Flags().Bool("all", false, "also list pods that want no broker, with the reason")
	}
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if err := output.check(); err != nil {
			return err
		}
		if _, err := labels.Parse(*selector); err != nil {
			return program.Usagef("--selector is %q, expected labels such as app=orders: %v", *selector, err)
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		survey := brokers.Survey{Client: client, Ask: only != brokers.Missing, Judge: only != brokers.Missing, All: withNone != nil && *withNone}
		rows, notes, err := survey.Rows(cmd.Context(), namespace, *selector)
		if err != nil {
			return err
		}
		for _, note := range notes {
			fmt.Fprintln(cmd.ErrOrStderr(), noteMark+note)
		}
		if only != "" {
			rows = slices.DeleteFunc(rows, func(r brokers.Row) bool { return r.Broker != only })
		}
		if len(names) > 0 {
			if rows, err = named(rows, names); err != nil {
				return err
			}
		}
		if only != "" && len(rows) == 0 && len(notes) > 0 {
			return errFound // the notes say why nothing is known
		}
		if note := brokers.Doubt(rows); note != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), noteMark+note)
		}
		return output.write(cmd.OutOrStdout(), cmd.ErrOrStderr(), rows, cluster.allNamespaces)
	}
	return cmd
}

// named returns the rows of the pods with these names.
func named(rows []brokers.Row, names []string) ([]brokers.Row, error) {
	names = slices.Clone(names)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "pod/")
	}
	var unknown []string
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r brokers.Row) bool { return r.Pod == name }) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("found no running pod with a broker, or that should have one, of the name %s: kubectl crypto-broker explain says why", strings.Join(unknown, ", "))
	}
	return slices.DeleteFunc(rows, func(r brokers.Row) bool { return !slices.Contains(names, r.Pod) }), nil
}
