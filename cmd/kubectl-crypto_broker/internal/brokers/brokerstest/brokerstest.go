// SPDX-License-Identifier: Apache-2.0

// Package brokerstest has pods and clusters for tests of package brokers and of the
// packages that use it.
package brokerstest

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// InjectedPod returns a pod with a broker of an image.
func InjectedPod(namespace, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
		Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: contract.BrokerContainer, Image: image, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
	}
}

// OnlyIn lets dry runs succeed in these namespaces only, and counts them all.
func OnlyIn(client *fake.Clientset, namespaces string) *int {
	asked := 0
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		if !strings.Contains(namespaces, action.GetNamespace()) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New(`User "jane" cannot create resource "pods" in API group "" in the namespace "`+action.GetNamespace()+`"`))
		}
		return true, InjectedPod(action.GetNamespace(), "broker:2"), nil
	})
	return &asked
}

// BrokerPod returns a pod whose broker has started, with changes.
func BrokerPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"},
		Spec: corev1.PodSpec{NodeName: "node", InitContainers: []corev1.Container{{
			Name: contract.BrokerContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Args: []string{"--socket-group=1", "--status-address=:9470"},
		}}},
		Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: contract.BrokerContainer, Started: new(true)}}},
	}
	for _, change := range change {
		change(pod)
	}
	return pod
}
