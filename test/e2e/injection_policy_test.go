// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestPoliciesInTheAPIServerInjectInPlaceOfTheWebhook(t *testing.T) {
	chart := environment.Chart(shared.Repository)
	t.Cleanup(func() { // the tests behind this one find the webhook
		if _, err := shared.helm.Install(timeoutContext(t, 4*time.Minute), chart, &shared.Images); err != nil {
			t.Errorf("installing the chart with its own values again: %v", err)
		}
	})
	_, err := shared.helm.Install(t.Context(), chart, &shared.Images, "injection.mode=policy")
	must(t, err)
	_, err = shared.clientset.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), environment.Release, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("asking for the mutating webhook: %v, expected it to be gone", err)
	}

	namespace := newNamespace(t, restricted)
	profile := createProfile(t, namespace, "sha-256")
	eventually(t, time.Minute, "the API server knows the policies and their template", func() error {
		pod := appPod(namespace, inject("true"), nil)
		err := shared.client.Create(t.Context(), pod, client.DryRunAll)
		if err == nil && len(pod.Spec.InitContainers) == 0 {
			err = errors.New("a pod that asks for a broker gets none")
		}
		return err
	})
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", 2, load)))
	pods := readyPods(t, namespace, "app=app", 2)
	for i := range pods {
		awaitCalls(t, &pods[i], statsPort, nil, 50)
	}

	t.Run("a change reaches their brokers without losing a call", func(t *testing.T) {
		changed := changeHash(t, profile, "sha3-512")
		for i := range pods {
			awaitAlgorithm(t, &pods[i], "sha3-512", changed, resync)
		}
		awaitPropagated(t, profile, 2)
		expectCallsGoOn(t, pods)
	})

	t.Run("without the operator pods still get their brokers", func(t *testing.T) {
		stopOperator(t)
		pod := createPod(t, appPod(namespace, inject("true"), load))
		awaitCalls(t, pod, statsPort, nil, 50)
		expectNoFailure(t, pod, mustStats(t, pod))
	})

	t.Run("a value that can't be is refused with a sentence", func(t *testing.T) {
		expectRefused(t, shared.client.Create(t.Context(), appPod(namespace, inject("yes"), nil)),
			`metadata.annotations[cryptobroker.io/inject]: found "yes", expected "true" to get a broker or "false" to get none`)
	})

	t.Run("the webhook comes back and leaves their pods as they are", func(t *testing.T) {
		_, err := shared.helm.Install(t.Context(), chart, &shared.Images)
		must(t, err)
		expectCallsGoOn(t, pods)
		fresh := createPod(t, appPod(namespace, inject("true"), nil))
		if count := brokersIn(fresh); count != 1 {
			t.Errorf("found %d brokers in a pod, expected one", count)
		}
	})
}

func brokersIn(pod *corev1.Pod) (count int) {
	for _, each := range pod.Spec.InitContainers {
		if each.Name == "crypto-broker" {
			count++
		}
	}
	return count
}
