// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// annotationOfRollouts is the sentence in the help of both commands about the annotation that
// they write.
const annotationOfRollouts = `

The command writes the annotation ` + v1alpha1.PromoteAnnotation + ` on the object, with the attempt of status.rollout. So it never
counts for a change that somebody makes meanwhile. It needs the right to patch the object.`

func newPromote(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "promote KIND/NAME",
		Short: "Let the rollout of a profile go on, or finish it at once",
		Long: `Ends the present step of a profile's rollout (spec.rollout), also after a failure. With --full it ends the
rollout at once: all pods get the new profile.` + annotationOfRollouts,
		Example: `  ` + name + ` promote cprof/payments -n shop
  ` + name + ` promote ccprof/baseline --full`,
		Args: oneProfile,
	}
	cluster.flags(cmd, false)
	cmd.ValidArgsFunction = cluster.complete(profileNames)
	full := cmd.Flags().Bool("full", false, "bring the new profile to all pods at once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *full {
			return cluster.askRollout(cmd, args, rollouts.PromoteFull)
		}
		return cluster.askRollout(cmd, args, rollouts.Promote)
	}
	return cmd
}

func newAbort(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abort KIND/NAME",
		Short: "Give all pods the profile that they had before its rollout",
		Long: `Ends a profile's rollout (spec.rollout), and gives all pods the profile that they had before. The object keeps the
change: take it back there, or bring it to all pods by promote --full.` + annotationOfRollouts,
		Example: `  ` + name + ` abort cprof/payments -n shop`,
		Args:    oneProfile,
	}
	cluster.flags(cmd, false)
	cmd.ValidArgsFunction = cluster.complete(profileNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return cluster.askRollout(cmd, args, rollouts.Abort)
	}
	return cmd
}

// askRollout requests an action on the rollout of the profile that the arguments name.
func (c *cluster) askRollout(cmd *cobra.Command, args []string, action rollouts.Action) error {
	if len(args) == 0 {
		return program.Usagef("found no argument, expected one profile such as cprof/NAME")
	}
	object, err := parseProfile(args[0])
	if err != nil {
		return err
	}
	client, namespace, err := c.connect()
	if err != nil {
		return err
	}
	source := downgrade.Source{Kind: object.kind, Name: object.name}
	if source.Kind == downgrade.KindNamespaced {
		source.Namespace = namespace
	}
	switch then, err := rollouts.Ask(cmd.Context(), client, source, action, nil); {
	case errors.Is(err, rollouts.ErrNone):
		fmt.Fprintf(cmd.OutOrStdout(), "%s has no rollout in progress.\n", source)
		return nil
	case err != nil:
		return err
	default:
		fmt.Fprintf(cmd.OutOrStdout(), "The rollout of %s %s.\n", source, then)
		return nil
	}
}
