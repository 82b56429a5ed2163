// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
)

// Versions returns how many running pods have a broker of each version of the operator, in
// a namespace, or in all if it is empty. The version is empty for brokers without a stamp.
// It reads pods in pages.
func Versions(ctx context.Context, client kubernetes.Interface, namespace string) (map[string]int, error) {
	counted := map[string]int{}
	for next := ""; ; {
		page, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if pod := &page.Items[i]; injected.Broker(pod) != nil && !workload.Ended(pod) {
				counted[versionOf(pod)]++
			}
		}
		if next = page.Continue; next == "" {
			return counted, nil
		}
	}
}

// versionOf returns the version of the operator that injected a pod's broker, from the
// stamp of the pod.
func versionOf(pod *corev1.Pod) string {
	stamp := pod.Annotations[contract.InjectedAnnotation]
	return stamp[:max(0, strings.LastIndex(stamp, "/"))]
}
