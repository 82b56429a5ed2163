// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

// cluster is the cluster that the flags of kubectl name.
type cluster struct {
	rules         *clientcmd.ClientConfigLoadingRules
	overrides     clientcmd.ConfigOverrides
	allNamespaces bool
}

// flags adds kubectl's flags that choose a cluster to a command.
func (c *cluster) flags(cmd *cobra.Command, many bool) {
	if c.rules == nil {
		c.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	}
	flags := cmd.Flags()
	flags.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "`file` with clusters, users and contexts, instead of KUBECONFIG and ~/.kube/config")
	clientcmd.BindOverrideFlags(&c.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("namespace", c.complete(namespaceNames)))
	cobra.CheckErr(cmd.MarkFlagFilename("kubeconfig"))
	if many {
		flags.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "all namespaces instead of one")
	}
}

// operatorFlag adds the flag that names the operator's namespace.
func (c *cluster) operatorFlag(cmd *cobra.Command) *string {
	namespace := cmd.Flags().String("operator-namespace", "", "`namespace` of the operator (default: the one that its webhooks name, else "+installation.DefaultNamespace+")")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("operator-namespace", c.complete(namespaceNames)))
	return namespace
}

// isNamed reports whether the flags or a kubeconfig name a cluster.
func (c *cluster) isNamed() bool {
	_, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides).ClientConfig()
	return !clientcmd.IsEmptyConfig(err)
}

// pin sets --context to the current context of the kubeconfig, unless it is given or there is
// none. So a long-running command, and the commands that it shows, use the same cluster even if
// somebody changes the current context.
func (c *cluster) pin(flags *pflag.FlagSet) error {
	if c.overrides.CurrentContext != "" {
		return nil
	}
	file, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides).RawConfig()
	if err != nil {
		return fmt.Errorf("no cluster to ask: %w", err)
	}
	if _, is := file.Contexts[file.CurrentContext]; !is {
		return nil // missing settings are reported when the command calls the cluster
	}
	return flags.Set(clientcmd.FlagContext, file.CurrentContext)
}

// connect returns a client and a namespace: the namespace of -n, or else of the context. It is
// empty for all namespaces. The client drops warnings of the API server, because they are about
// dry runs.
func (c *cluster) connect() (kubernetes.Interface, string, error) {
	return c.connectWith(rest.NoWarnings{})
}

// connectWith is connect with a handler of the API server's warnings.
func (c *cluster) connectWith(warnings rest.WarningHandler) (kubernetes.Interface, string, error) {
	settings, namespace, err := c.settings(warnings)
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		return nil, "", fmt.Errorf("prepare to ask the cluster at %s: %w", settings.Host, err)
	}
	return client, namespace, nil
}

// settings returns the connection settings of the cluster, and a namespace as connect does.
func (c *cluster) settings(warnings rest.WarningHandler) (*rest.Config, string, error) {
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
	settings, err := config.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("expected one in the file of --kubeconfig or KUBECONFIG, or in ~/.kube/config")
		}
		return nil, "", fmt.Errorf("no cluster to ask: %w", err)
	}
	settings.QPS = -1 // the API server itself limits the requests of one user (API Priority and Fairness)
	settings.WarningHandler = warnings
	settings.Wrap(brokers.Bound)
	settings.UserAgent = "kubectl-crypto_broker/" + program.Version(version)
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("no namespace: %w", err)
	}
	if c.allNamespaces {
		namespace = ""
	}
	return settings, namespace, nil
}
