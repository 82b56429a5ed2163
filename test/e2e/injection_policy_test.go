// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestPoliciesInTheAPIServerInjectInPlaceOfTheWebhook(t *testing.T) {
	chart := environment.Chart(shared.Repository)
	restoreChart(t)
	namespace := newNamespace(t, restricted)
	profile := createProfile(t, namespace, "sha-256")
	switchTo := func(mode string, values ...string) {
		t.Helper()
		admitted := askAllTheTime(t, "pods with a broker", again(func(ctx context.Context) error { return admit(ctx, namespace) }))
		written := askAllTheTime(t, "profiles", again(func(ctx context.Context) error { return write(ctx, namespace) }))
		_, err := shared.helm.Install(t.Context(), chart, &shared.Images, append(values, "injection.mode="+mode)...)
		must(t, err)
		awaitOperatorPods(t, replicas)
		awaitInjection(t, namespace, mode)
		written()
		admitted()
	}
	switchTo("policy", "broker.tlsProvider=openssl") // installed together, because each installation takes long
	awaitBrokerImage(t, namespace, "/broker-openssl:")
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", 2, load)))
	pods := readyPods(t, namespace, "app=app", 2)
	for i := range pods {
		awaitCalls(t, &pods[i], statsPort, nil, 50)
	}

	t.Run("their brokers have the image with OpenSSL, and tell its version", func(t *testing.T) {
		metrics, err := podGet(t.Context(), &pods[0], brokerStatusPort, "metrics")
		must(t, err)
		if !strings.Contains(string(metrics), `provider="openssl",version="OpenSSL 3.`) {
			t.Errorf("found no TLS by OpenSSL in\n%s", metrics)
		}
	})

	t.Run("a change reaches their brokers without losing a call", func(t *testing.T) {
		changed := changeHash(t, profile, "sha3-512")
		for i := range pods {
			awaitAlgorithm(t, &pods[i], "sha3-512", changed, changeTimeout)
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
		switchTo("webhook")
		expectCallsGoOn(t, pods)
		fresh := createPod(t, appPod(namespace, inject("true"), nil))
		if count := brokersIn(fresh); count != 1 {
			t.Errorf("found %d brokers in a pod, expected one", count)
		}
	})
}

// awaitInjection waits until pods are injected in a way. Only the webhook gives them a snapshot of the profiles.
func awaitInjection(t testing.TB, namespace, mode string) {
	t.Helper()
	eventually(t, 3*time.Minute, "pods are injected by "+mode, func() error {
		pod := appPod(namespace, inject("true"), nil)
		err := shared.client.Create(t.Context(), pod, client.DryRunAll)
		if _, bySnapshot := pod.Annotations[contract.ProfilesSnapshotAnnotation]; err == nil && bySnapshot != (mode == "webhook") {
			err = errors.New("they are injected in the other way")
		}
		return err
	})
}

// awaitBrokerImage waits until the brokers of new pods have an image. The leader writes the image into the template of the policies
// after its election, which may happen after the pods of the operator are ready.
func awaitBrokerImage(t testing.TB, namespace, part string) {
	t.Helper()
	eventually(t, 3*time.Minute, "brokers of new pods have the image "+part, func() error {
		pod := appPod(namespace, inject("true"), nil)
		if err := shared.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err
		}
		for _, each := range pod.Spec.InitContainers {
			if each.Name == "crypto-broker" && strings.Contains(each.Image, part) {
				return nil
			}
		}
		return errors.New("they have another one")
	})
}

// again repeats a request for a minute, as controllers do: the API server takes up to 30 seconds to know the kind of the policies'
// parameters. If a pod is admitted without its broker, the test fails at once.
func again(ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return retry.OnError(wait.Backoff{Steps: 30, Duration: 100 * time.Millisecond, Factor: 1.2}, func(err error) bool {
			return ctx.Err() == nil && !errors.Is(err, errWithoutBroker)
		}, func() error { return ask(ctx) })
	}
}

// write creates a profile as a dry run.
func write(ctx context.Context, namespace string) error {
	return shared.client.Create(ctx, &v1alpha1.CryptoProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "written", Namespace: namespace}, Spec: hashing("Written", "sha-256"),
	}, client.DryRunAll)
}

func brokersIn(pod *corev1.Pod) (count int) {
	for _, each := range pod.Spec.InitContainers {
		if each.Name == "crypto-broker" {
			count++
		}
	}
	return count
}
