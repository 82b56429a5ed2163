// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

func newProfiles(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles of a namespace, the objects that they come from, and which object counts",
		Long: `Lists the profiles of a namespace: each with the CryptoProfile (cprof) or ClusterCryptoProfile (ccprof) that it comes
from. If several objects have the same profile name, the one that counts comes first. For an object that is not served,
the command says why.

  STATE     served          brokers should serve it as the object describes it
            withheld        it is weaker than what was served: diff says how, and allow allows it
            conflict        the profile name belongs to another object
            invalid         the broker's compiler refuses it
            pending         the operator has not written it yet
            without object  it is served, and its object is gone
            other states    are reasons of the condition Accepted
  UPDATED   pods whose broker serves the set, of all pods with a broker, as the operator has counted them`,
		Example: `  ` + name + ` profiles -n shop
  ` + name + ` profiles -n shop -o json`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	output := outputFlag(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := output.check(); err != nil {
			return err
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		if contract.IsExcluded(namespace) {
			return fmt.Errorf("namespace %s never gets profiles", namespace)
		}
		set, err := effective.Read(cmd.Context(), client, namespace)
		if err != nil {
			return err
		}
		return output.writeProfiles(cmd.OutOrStdout(), cmd.ErrOrStderr(), set)
	}
	return cmd
}

func (o *output) writeProfiles(w, stderr io.Writer, set *effective.Set) error {
	rows := set.Rows()
	if rows == nil {
		rows = []effective.Row{}
	}
	digest, number := set.Digest()
	if done, err := o.forPrograms(w, map[string]any{"namespace": set.Namespace.Name, "digest": digest, "revision": number, "profiles": rows}); done {
		return err
	}
	switch {
	case digest == "" && set.Served.IsUnknown():
		fmt.Fprintf(w, "The operator does not know what namespace %s served before: it writes no set until all profiles are allowed.\n\n", set.Namespace.Name)
	case digest == "":
		fmt.Fprintf(w, "Namespace %s has no set of profiles.\n\n", set.Namespace.Name)
	default:
		fmt.Fprintf(w, "The brokers of namespace %s should serve the set %s, revision %s.\n\n", set.Namespace.Name, text.ShortDigest(digest), cmp.Or(revision(number), "unknown"))
	}
	if len(rows) == 0 {
		fmt.Fprintln(stderr, "No profiles found.")
		return nil
	}
	var lines [][]string
	for _, r := range rows {
		strength, updated := "", ""
		if r.Strength > 0 {
			strength = fmt.Sprint(r.Strength)
		}
		if r.Pods != nil {
			updated = fmt.Sprintf("%d/%d", *r.UpdatedPods, *r.Pods)
		}
		lines = append(lines, []string{r.Profile, r.From, r.State, strength, updated, r.Why})
	}
	return writeTable(w, []string{"PROFILE", "FROM", "STATE", "STRENGTH", "UPDATED", "WHY"}, lines)
}
