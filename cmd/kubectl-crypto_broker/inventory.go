// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

func newInventory(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Show which cryptography workloads have really used, and until when standards allow it",
		Long: `Shows which algorithms, keys and profiles the calls of each workload used, from what running brokers have served. It
asks all brokers of a namespace, or of all namespaces with -A. It changes nothing.

  CALLS         since the brokers began to count
  LAST          when the last of the calls ended
  STRENGTH      security strength in bits, against computers of today (NIST SP 800-57)
  POST-QUANTUM  vulnerable  a quantum computer would break it
                resistant   keys and signatures are made to resist quantum computers
                unaffected  there are no key pairs
  NIST          the last years before NIST deprecates and disallows it (draft IR 8547; SHA-1: announcement of 2022)
  CNSA          the newest suite of the NSA that has all of it: 2.0, 1.0 (services in clouds until 2033), none
  FIPS          whether FIPS 140-3 approves it, in the module that brokers have

With --diff, the output has only what came and what went since an earlier inventory, which -o json wrote for the
same namespaces.

A broker counts from its start, and does not know the calls of a pod that is gone. A broker is asked through the API
server's proxy, which needs the right to get pods/proxy.

Exit codes:
  0  all brokers have answered
  1  the question could not be asked; for example, a right is missing
  2  the command line is wrong
  4  some brokers or uses are not known, and the output says which`,
		Example: `  ` + name + ` inventory -A
  ` + name + ` inventory -A --uses sha-1 --uses rsa-2048 --uses p-256
  ` + name + ` inventory -n shop --since 24h -o json
  ` + name + ` inventory -A -o cyclonedx
  ` + name + ` inventory -A --diff inventory-of-may.json`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, true)
	output := outputFlag(cmd, "table", "json", "yaml", "cyclonedx")
	only := cmd.Flags().StringArray("uses", nil, "only uses of this `name`, such as sha-1, rsa-2048, p-256 or aes-gcm; may be repeated")
	since := cmd.Flags().String("since", "", "only what calls have used since this `time`: a duration such as 24h, or a time such as 2026-11-23T06:00:00Z")
	earlierFile := cmd.Flags().String("diff", "", "show how the inventory differs from the earlier one in this `file`, as -o json wrote it; - stands for standard input")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("uses", cobra.FixedCompletions(inventory.Names(), cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := output.check(); err != nil {
			return err
		}
		selection, err := inventory.NewSelection(*only)
		if err != nil {
			return program.Usagef("--uses: %v", err)
		}
		maker := inventory.Maker{Only: selection, Progress: cmd.ErrOrStderr(), Now: time.Now()}
		if maker.UsedSince, err = timeOf(*since, maker.Now); err != nil {
			return err
		}
		earlier, err := readInventory(*earlierFile, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if earlier != nil && output.format == "cyclonedx" {
			return program.Usagef("--diff is given with --output cyclonedx, expected table, json or yaml")
		}
		if maker.Client, maker.Namespace, err = cluster.connect(); err != nil {
			return err
		}
		found, err := maker.Make(cmd.Context())
		if err != nil {
			return err
		}
		if earlier == nil {
			err = output.writeInventory(cmd.OutOrStdout(), found)
		} else {
			err = output.writeDifference(cmd.OutOrStdout(), found, earlier)
		}
		if err != nil {
			return err
		}
		if len(found.Unknown) > 0 {
			return codeError(exitNotKnown)
		}
		return nil
	}
	return cmd
}

// timeOf returns the time of a flag, zero for an empty one.
func timeOf(flag string, now time.Time) (time.Time, error) {
	if flag == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(flag); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, flag)
	if err != nil {
		return time.Time{}, program.Usagef("--since is %q, expected a duration such as 24h, or a time such as 2026-11-23T06:00:00Z", flag)
	}
	return at, nil
}

// writeInventory writes an inventory in the format.
func (o *output) writeInventory(w io.Writer, found *inventory.Inventory) error {
	if o.format == "cyclonedx" {
		bom, err := found.CBOM()
		if err != nil {
			return err
		}
		_, err = (&output{format: "json"}).forPrograms(w, bom)
		return err
	}
	if done, err := o.forPrograms(w, found); done || err != nil {
		return err
	}
	return writeInventory(w, found)
}

// writeInventory prints an inventory for people.
func writeInventory(w io.Writer, found *inventory.Inventory) error {
	fmt.Fprintf(w, "%d of %s answered", found.Answered, text.Count(found.Brokers, "broker"))
	if found.Oldest != nil {
		fmt.Fprintf(w, "; the first began to count at %s, the last at %s", stamp(*found.Oldest), stamp(*found.Youngest))
	}
	fmt.Fprint(w, ".\n\n")
	if len(found.Uses) == 0 {
		fmt.Fprintln(w, "They have counted no such calls.")
	} else if err := writeUses(w, nil, found.Uses); err != nil {
		return err
	}
	writeUnknown(w, found.Unknown)
	return nil
}

// writeUses prints a table of uses, each with a mark in front if there are marks.
func writeUses(w io.Writer, marks []string, all []inventory.Use) error {
	head := []string{"NAMESPACE", "WORKLOAD", "PODS", "CONTAINER", "PROFILE", "USED", "CALLS", "LAST", "STRENGTH", "POST-QUANTUM", "NIST", "CNSA", "FIPS"}
	if marks != nil {
		head = append([]string{"CHANGE"}, head...)
	}
	var lines [][]string
	for i, u := range all {
		used := []string{strings.TrimSpace(u.Operation + " " + u.Algorithm)}
		for _, key := range u.Keys {
			used = append(used, key.String())
		}
		fips := "yes"
		if !u.FIPS {
			fips = "no"
		}
		line := []string{
			u.Namespace, u.Workload, fmt.Sprint(u.Pods), u.Container, u.Profile, strings.Join(used, ", "), fmt.Sprint(u.Calls), stamp(u.Last),
			fmt.Sprint(u.Strength), string(u.PostQuantum), u.NIST(), string(u.CNSA), fips,
		}
		if marks != nil {
			line = append([]string{marks[i]}, line...)
		}
		lines = append(lines, line)
	}
	return writeTable(w, head, lines)
}
