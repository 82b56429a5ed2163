// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/explain"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

func newExplain(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain (POD | KIND/NAME | -f FILE...)",
		Short: "Explain why a pod has a broker or has none, or a workload no pods",
		Long: `Explains why a pod has a broker or has none. It checks the pod's annotation and namespace, whether the pod is of a
kind that gets none, whether a webhook or a policy injects in the namespace and is complete, and whether the pod is
older. If a broker has not started, it says what the broker waits for. If a broker refuses its set of profiles, it says
why. Then it says what to do.

For a deployment, statefulset, daemonset, job or cronjob it says what would happen to a new pod of the template, by
creating one as a dry run, and which pods have no broker. Use this for a rollout whose pods are refused.

For manifests it says, without a cluster, which pods would get a broker, and if not, why.

The exit code is 0 if nothing is wrong, also if no broker is wanted. It is 1 if a broker is missing, is refused, has not
started or does not serve its set of profiles, and if that is not known.`,
		Example: `  ` + name + ` explain orders-5d8f7c9b4-x2x7k -n shop
  ` + name + ` explain deployment/orders -n shop
  ` + name + ` explain -f deployment.yaml`,
	}
	cluster.flags(cmd, false)
	cmd.ValidArgsFunction = cluster.complete(podAndWorkloadNames)
	o := offline{files: manifest.FilesFlag(cmd), template: defaultTemplate()}
	o.labelledFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch manifests := len(*o.files) > 0; {
		case manifests && len(args) > 0 || !manifests && len(args) != 1:
			return program.Usagef("found %s, expected either the name of one pod or workload, or -f FILE", text.Count(len(args), "argument"))
		case manifests:
			if o.namespace = cluster.overrides.Context.Namespace; o.namespace == "" {
				o.namespace = "default"
			}
			documents, err := manifest.ReadObjects(*o.files, cmd.InOrStdin())
			if err != nil {
				return err
			}
			labelled := manifest.LabelledNamespaces(documents)
			return foundUnless(explain.Manifests(documents, o.namespace, o.template,
				func(p *manifest.PodTemplate) (injection.Decision, error) { return o.wants(p, labelled) }, cmd.OutOrStdout()))
		}
		var w workload.Workload
		podName := args[0][strings.Index(args[0], "/")+1:]
		if podName == "" {
			return program.Usagef("found %q, expected the name of a pod", args[0])
		}
		if explain.IsWorkload(args[0]) {
			var err error
			if w, err = workload.ParseAny(args[0], ""); err != nil {
				return err
			}
		}
		warnings := &dryrun.Warnings{}
		client, namespace, err := cluster.connectWith(warnings)
		if err != nil {
			return err
		}
		trial := dryrun.Trial{Client: client, Warnings: warnings}
		if w.Kind != "" {
			w.Namespace = namespace
			return foundUnless(explain.Workload(cmd.Context(), trial, w, cmd.OutOrStdout()))
		}
		pod, err := client.CoreV1().Pods(namespace).Get(cmd.Context(), podName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w in namespace %s; a workload is named with its kind, such as deployment/%s", err, namespace, podName)
		}
		if err != nil {
			return err
		}
		return foundUnless(explain.Pod(cmd.Context(), trial, pod, cmd.OutOrStdout()))
	}
	return cmd
}

// foundUnless returns the error of a check, or errFound if the check found a problem.
func foundUnless(fine bool, err error) error {
	if err == nil && !fine {
		return errFound
	}
	return err
}
