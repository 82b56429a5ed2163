// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// injectedPod is one with a broker of an image.
func injectedPod(namespace, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
		Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: contract.BrokerContainer, Image: image, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
	}
}

// onlyIn lets dry runs succeed in these namespaces only, and counts them all.
func onlyIn(client *fake.Clientset, namespaces string) *int {
	asked := 0
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		if !strings.Contains(namespaces, action.GetNamespace()) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New(`User "jane" cannot create resource "pods" in API group "" in the namespace "`+action.GetNamespace()+`"`))
		}
		return true, injectedPod(action.GetNamespace(), "broker:2"), nil
	})
	return &asked
}

func TestOneNamespaceInWhichANewPodCanBeTriedIsEnough(t *testing.T) {
	client := fake.NewClientset(injectedPod("a", "broker:1"), injectedPod("b", "broker:2"))
	asked := onlyIn(client, "b")
	rows, notes, err := survey{client: client, judge: true}.rows(t.Context(), "", "")
	if err != nil || len(notes) > 0 || len(rows) != 2 || rows[0].Broker != brokerOutdated || rows[1].Broker != brokerCurrent || *asked != 2 {
		t.Errorf("found %+v, %q, %v after %d dry runs", rows, notes, err, *asked)
	}
}

func TestWithoutTheRightToTryANewPodThatIsSaidOnce(t *testing.T) {
	client := fake.NewClientset(injectedPod("a", "broker:1"), injectedPod("b", "broker:2"))
	onlyIn(client, "")
	rows, notes, err := survey{client: client, judge: true}.rows(t.Context(), "", "")
	if err != nil || len(rows) != 2 || rows[0].Broker != brokerPresent || len(notes) != 1 ||
		notes[0] != "which brokers are outdated is not known: the right to create pods in namespace b is missing (user jane)" {
		t.Errorf("found %+v, %q, %v", rows, notes, err)
	}
}

func TestWhatMissesABrokerIsListedWithoutTryingANewPod(t *testing.T) {
	client := fake.NewClientset(injectedPod("a", "broker:1"))
	asked := onlyIn(client, "a")
	if _, notes, err := (survey{client: client}).rows(t.Context(), "", ""); err != nil || len(notes) > 0 || *asked != 0 {
		t.Errorf("found %q, %v after %d dry runs", notes, err, *asked)
	}
}
