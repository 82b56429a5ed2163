// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
)

// completionTimeout bounds how long a shell waits for names.
const completionTimeout = 3 * time.Second

// complete completes with names from the cluster, or with nothing if the cluster
// cannot be asked.
func (c *cluster) complete(list func(context.Context, kubernetes.Interface, string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client, namespace, err := c.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return list(ctx, client, namespace), cobra.ShellCompDirectiveNoFileComp
	}
}

func podNames(ctx context.Context, client kubernetes.Interface, namespace string) (names []string) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

func namespaceNames(ctx context.Context, client kubernetes.Interface, _ string) (names []string) {
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range namespaces.Items {
		names = append(names, namespaces.Items[i].Name)
	}
	return names
}

// podAndWorkloadNames returns the pods and workloads that can be explained, except jobs and
// cronjobs.
func podAndWorkloadNames(ctx context.Context, client kubernetes.Interface, namespace string) []string {
	return append(podNames(ctx, client, namespace), workloadNames(ctx, client, namespace)...)
}

// workloadNames returns the workloads that can be restarted, of the kinds that the
// user may list.
func workloadNames(ctx context.Context, client kubernetes.Interface, namespace string) (names []string) {
	if deployments, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range deployments.Items {
			names = append(names, workload.Deployment+"/"+deployments.Items[i].Name)
		}
	}
	if sets, err := client.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range sets.Items {
			names = append(names, workload.StatefulSet+"/"+sets.Items[i].Name)
		}
	}
	if sets, err := client.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range sets.Items {
			names = append(names, workload.DaemonSet+"/"+sets.Items[i].Name)
		}
	}
	return names
}

// profileNames returns the profiles of a namespace and of the cluster, of the kinds that the
// user may list.
func profileNames(ctx context.Context, client kubernetes.Interface, namespace string) []string {
	names, err := effective.Names(ctx, client, namespace)
	if err != nil {
		return nil
	}
	return names
}
