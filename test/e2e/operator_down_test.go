// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// replicas is the chart's default.
const replicas = 2

// stopOperator takes the operator away and brings it back at the end of the test, if startOperator did not before.
func stopOperator(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := scaleOperator(ctx, replicas); err != nil {
			t.Errorf("bringing the operator back: %v", err)
		}
	})
	must(t, scaleOperator(t.Context(), 0))
}

func startOperator(t testing.TB) {
	t.Helper()
	must(t, scaleOperator(t.Context(), replicas))
}

// scaleOperator sets the operator's replicas and waits until there are exactly that many pods, ready and behind the
// webhook's service: the API server keeps connections to those that are on their way out.
func scaleOperator(ctx context.Context, count int32) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	deployments := shared.clientset.AppsV1().Deployments(environment.Namespace)
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: environment.Release, Namespace: environment.Namespace},
		Spec: autoscalingv1.ScaleSpec{Replicas: count}}
	if _, err := deployments.UpdateScale(ctx, environment.Release, scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for {
		ready, all, err := webhookEndpoints(ctx)
		pods, more := shared.clientset.CoreV1().Pods(environment.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: "app.kubernetes.io/name=" + environment.Release})
		if err = errors.Join(err, more); err == nil && ready == int(count) && all == int(count) &&
			len(pods.Items) == int(count) && (count == 0 || webhookAnswers(ctx) == nil) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting until %d replicas answer: %d of %d endpoints are ready", count, ready, all), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// webhookEndpoints counts what is behind the webhook's service.
func webhookEndpoints(ctx context.Context) (ready, all int, err error) {
	slices, err := shared.clientset.DiscoveryV1().EndpointSlices(environment.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + environment.Release + "-webhook"})
	if err != nil {
		return 0, 0, err
	}
	for _, slice := range slices.Items {
		for _, each := range slice.Endpoints {
			all++
			if each.Conditions.Ready != nil && *each.Conditions.Ready {
				ready++
			}
		}
	}
	return ready, all, nil
}

// webhookAnswers asks for a pod with a broker, without making it.
func webhookAnswers(ctx context.Context) error {
	pod := appPod(metav1.NamespaceDefault, inject("true"), nil)
	return shared.client.Create(ctx, pod, client.DryRunAll)
}

func TestWithoutTheOperatorOnlyPodsThatAskedForABrokerAreRefused(t *testing.T) {
	namespace := newNamespace(t, nil)
	stopOperator(t)
	for sentence, annotations := range map[string]map[string]string{
		"a pod without annotations is created":          nil,
		"a pod with an empty annotation map is created": {},
		"a pod with other annotations is created":       {"example.org/team": "payments", "cryptobroker.io/other": "true"},
		"a pod that declines is created":                inject("false"),
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := appPod(namespace, annotations, nil)
			must(t, shared.client.Create(t.Context(), pod))
			if hasBroker(pod) {
				t.Error("it got a broker")
			}
		})
	}
	for _, value := range []string{"true", "True", "yes"} {
		t.Run("a pod with the annotation "+value+" is refused", func(t *testing.T) {
			expectRefused(t, shared.client.Create(t.Context(), appPod(namespace, inject(value), nil)),
				"annotated.inject.cryptobroker.io")
		})
	}
	labelled := newNamespace(t, map[string]string{contract.InjectionLabel: contract.InjectionEnabled})
	t.Run("in a labelled namespace a pod that does not decline is refused", func(t *testing.T) {
		expectRefused(t, shared.client.Create(t.Context(), appPod(labelled, nil, nil)), "labelled.inject.cryptobroker.io")
		must(t, shared.client.Create(t.Context(), appPod(labelled, inject("false"), nil)))
	})
}

func TestWithoutTheOperatorPodsServeOn(t *testing.T) {
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	before := awaitCalls(t, pod, statsPort, nil, 10)
	stopOperator(t)
	expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, before, 50))
}

func TestWithoutTheOperatorANamespaceIsDeletedWithinTenSeconds(t *testing.T) {
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	profilesConfigMap(t, namespace)
	stopOperator(t)
	expectDeletedSoon(t, namespace)
}

// expectDeletedSoon deletes a namespace without pods. Kubernetes itself takes five seconds before it begins to empty
// one, and longer for pods than they take to end.
func expectDeletedSoon(t *testing.T, namespace string) {
	t.Helper()
	began := time.Now()
	if output, err := kubectl(t, "", "delete", "namespace", namespace, "--timeout=30s"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	took := time.Since(began)
	t.Logf("the namespace was gone after %.1f s", took.Seconds())
	if took > 10*time.Second {
		t.Errorf("deleting the namespace took %.1f s, expected at most 10 s", took.Seconds())
	}
}
