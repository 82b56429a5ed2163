// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// annotationOfRollouts is what the help of both commands says of what they write.
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
	cmd.RunE = cluster.askRollout(func(status *v1alpha1.RolloutStatus) (what, then string, err error) {
		switch {
		case *full:
			return "", "brings the new profile to all pods", nil
		case status.Phase == v1alpha1.RolloutReturned:
			return "", "", fmt.Errorf("the rollout went back to the old profile: %s Change the profile, or use --full to bring the new one to all pods", status.Message)
		}
		return "/" + strconv.Itoa(int(status.Step)), fmt.Sprintf("goes on after step %d", status.Step), nil
	})
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
	cmd.RunE = cluster.askRollout(func(*v1alpha1.RolloutStatus) (what, then string, err error) {
		return "/" + v1alpha1.PromoteReturn, "gives all pods the old profile again", nil
	})
	return cmd
}

// askRollout returns the run of a command that asks something of the rollout of one profile.
// ask returns what follows the attempt in the annotation, and what the rollout does then.
func (c *cluster) askRollout(ask func(*v1alpha1.RolloutStatus) (what, then string, err error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
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
		status, err := rolloutOf(cmd.Context(), client, source)
		if err != nil {
			return err
		}
		if status == nil || status.Phase == v1alpha1.RolloutComplete {
			fmt.Fprintf(cmd.OutOrStdout(), "Nothing of %s is being rolled out.\n", source)
			return nil
		}
		what, then, err := ask(status)
		if err != nil {
			return err
		}
		if err := patchAnnotation(cmd.Context(), client, source, v1alpha1.PromoteAnnotation, status.Attempt+what); err != nil {
			return fmt.Errorf("the rollout of %s stays as it is: %w", source, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The rollout of %s %s.\n", source, then)
		return nil
	}
}

// rolloutOf returns status.rollout of a profile of either kind.
func rolloutOf(ctx context.Context, client kubernetes.Interface, source downgrade.Source) (*v1alpha1.RolloutStatus, error) {
	body, err := client.CoreV1().RESTClient().Get().AbsPath(pathOf(source)...).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s could not be read: %w", source, err)
	}
	var found struct {
		Status struct {
			Rollout *v1alpha1.RolloutStatus `json:"rollout"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, fmt.Errorf("%s can't be read: %w", source, err)
	}
	return found.Status.Rollout, nil
}

// pathOf returns the path of an object in the API server.
func pathOf(source downgrade.Source) []string {
	path := []string{"/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version}
	if source.Namespace != "" {
		path = append(path, "namespaces", source.Namespace)
	}
	return append(path, source.Resource(), source.Name)
}
