// SPDX-License-Identifier: Apache-2.0

// Package injected finds the broker in a pod that exists. It applies package
// broker/contract to the types of Kubernetes, for the webhook, the controllers and
// the kubectl plugin.
package injected

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Broker returns the broker's container in the pod, nil if there is none.
func Broker(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if container := &pod.Spec.InitContainers[i]; contract.IsBroker(container.Name, container.RestartPolicy) {
			return container
		}
	}
	return nil
}

// BrokerStatus returns what the kubelet says of the broker's container, nil if the
// pod has no broker or the kubelet says nothing yet.
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
