// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// pluginVersion is the version of this program.
type pluginVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// operatorVersion is the version of the operator of a cluster.
type operatorVersion struct {
	Version    string `json:"version,omitempty"`
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment,omitempty"`
	Image      string `json:"image,omitempty"`
	Replicas   int32  `json:"replicas"`
	Available  int32  `json:"available"`
}

// brokersVersion is the number of pods with a broker that one version of the operator injected.
type brokersVersion struct {
	// Version is empty for brokers without a stamp.
	Version string `json:"version"`
	Pods    int    `json:"pods"`
}

// versions is the output of the command.
type versions struct {
	Plugin   pluginVersion    `json:"plugin"`
	Operator *operatorVersion `json:"operator,omitempty"`
	Brokers  []brokersVersion `json:"brokers,omitempty"`
}

func newVersion(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin, of the operator, and of brokers",
		Long: `Prints the version of the plugin, the version of the operator with its image, and how many pods have a broker of
which version: of all namespaces, or of the namespace that -n names. A broker has the version of the operator that injected it.

Without a cluster in the kubeconfig, and with --client, it prints only the version of the plugin.

The exit code is 1 if the cluster could not be asked, or if the user lacks a right to look.`,
		Example: `  ` + name + ` version
  ` + name + ` version --client
  ` + name + ` version -n shop -o json`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	output := outputFlag(cmd, "table", "json", "yaml")
	operatorNamespace := cluster.operatorFlag(cmd)
	alone := cmd.Flags().Bool("client", false, "print the version of the plugin, and ask no cluster")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := output.check(); err != nil {
			return err
		}
		answer := versions{Plugin: pluginVersion{program.Version(version), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
		var problems []error
		if !*alone && cluster.isNamed() {
			client, _, err := cluster.connect()
			if err != nil {
				return err
			}
			if problems, err = answer.ask(cmd.Context(), client, *operatorNamespace, cluster.overrides.Context.Namespace); err != nil {
				return err
			}
		}
		done, err := output.forPrograms(cmd.OutOrStdout(), answer)
		if !done {
			err = answer.write(cmd.OutOrStdout())
		}
		for _, problem := range problems {
			fmt.Fprintln(cmd.ErrOrStderr(), noteMark+apierror.OneLine(apierror.Plain(problem)))
		}
		if err == nil && len(problems) > 0 {
			return errFound
		}
		return err
	}
	return cmd
}

// ask adds the versions in a cluster. The problems are sentences about what could not be found
// out.
func (v *versions) ask(ctx context.Context, client kubernetes.Interface, operatorNamespace, namespace string) (problems []error, err error) {
	operator, err := installation.Find(ctx, client, operatorNamespace)
	if err != nil {
		return nil, err
	}
	v.Operator = &operatorVersion{Version: installation.RunningVersion(ctx, client, operator), Namespace: operator.Namespace, Image: operator.Image()}
	switch d := operator.Deployment; {
	case operator.DeploymentUnknown != nil:
		problems = append(problems, fmt.Errorf("the operator's Deployment is not known: %w", operator.DeploymentUnknown))
	case d == nil:
		problems = append(problems, fmt.Errorf("namespace %s has no Deployment of the operator: name its namespace by --operator-namespace", operator.Namespace))
	default:
		v.Operator.Deployment, v.Operator.Replicas, v.Operator.Available = d.Name, installation.Replicas(d), d.Status.AvailableReplicas
	}
	counted, err := brokers.Versions(ctx, client, namespace)
	switch {
	case err != nil && namespace == "" && apierror.LacksRight(err):
		problems = append(problems, fmt.Errorf("the versions of brokers are not known: %w: name one namespace with -n", err))
	case err != nil:
		problems = append(problems, fmt.Errorf("the versions of brokers are not known: %w", err))
	}
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(counted))) {
		v.Brokers = append(v.Brokers, brokersVersion{version, counted[version]})
	}
	return problems, ctx.Err()
}

// write writes the versions for people.
func (v *versions) write(w io.Writer) error {
	fmt.Fprintln(w, program.VersionLine("kubectl-crypto_broker", version))
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if o := v.Operator; o != nil && o.Deployment != "" {
		fmt.Fprintf(table, "operator\t%s\tdeployment/%s in namespace %s, image %s, %d of %d replicas available\n",
			cmp.Or(o.Version, "unknown"), o.Deployment, o.Namespace, o.Image, o.Available, o.Replicas)
	} else if o != nil && o.Version != "" {
		fmt.Fprintf(table, "operator\t%s\t\n", o.Version)
	}
	for _, b := range v.Brokers {
		fmt.Fprintf(table, "brokers\t%s\t%s\n", cmp.Or(b.Version, "unknown"), text.Count(b.Pods, "pod"))
	}
	return table.Flush()
}
