// SPDX-License-Identifier: Apache-2.0

// Package injected finds the broker in an existing pod. It applies package broker/contract to
// the types of Kubernetes, for the webhook, the controllers and the kubectl plugin.
package injected

import (
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
