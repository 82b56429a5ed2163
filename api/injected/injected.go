// SPDX-License-Identifier: Apache-2.0

// Package injected finds the broker in an existing pod, and pods for Windows, which have none. It applies
// package broker/contract to the types of Kubernetes, for the webhook, the controllers and the kubectl
// plugin.
package injected

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Broker returns the broker's container in a pod, or nil if there is none.
func Broker(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; contract.IsBroker(container.Name, container.RestartPolicy) {
			return container
		}
	}
	return nil
}

// BrokerStatus returns the status that the kubelet has written for the broker's container. It
// returns nil if the pod has no broker, or if the kubelet has not written a status yet.
func BrokerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if Broker(pod) == nil {
		return nil
	}
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; status.Name == contract.BrokerContainer {
			return status
		}
	}
	return nil
}

// IsForWindows reports whether a pod runs only on nodes with Windows: by its operating system, by its node
// selector or by its required node affinity.
func IsForWindows(pod *corev1.Pod) bool {
	return pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows ||
		pod.Spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows) ||
		requiresWindows(pod.Spec.Affinity)
}

// requiresWindows reports whether each term of the required node affinity names Windows and nothing else as
// the operating system. A node has to match one of the terms.
func requiresWindows(affinity *corev1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == corev1.LabelOSStable && e.Operator == corev1.NodeSelectorOpIn && slices.Equal(e.Values, []string{string(corev1.Windows)})
		})
	})
}
