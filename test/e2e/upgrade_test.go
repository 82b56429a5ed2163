// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestTheChartIsUpgradedUninstalledAndInstalledAgainWhilePodsCall(t *testing.T) {
	ownChart := environment.Chart(shared.Repository)
	before := previousVersion(t)
	if before.broker == shared.Images.Image("broker") {
		t.Fatalf("both versions have the broker %s, so nothing would be upgraded", before.broker)
	}
	restoreChart(t)
	helm := func(run func(context.Context) (string, error)) {
		t.Helper()
		_, err := run(t.Context())
		must(t, err)
	}
	uninstall(t)
	deleteLease(t)
	helm(func(ctx context.Context) (string, error) {
		return shared.helm.Install(ctx, before.chart, before.images)
	})
	expectDefinitionsOf(t, before.source)

	namespace := newNamespace(t, nil)
	guide := readUpgradeGuide(t, ownChart, namespace)
	profile := createProfile(t, namespace, "sha-256")
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", 3, load)))
	pods := readyPods(t, namespace, "app=app", 3)
	for i := range pods {
		expectBroker(t, &pods[i], before.broker)
		awaitCalls(t, &pods[i], statsPort, nil, 50)
	}

	t.Run("an upgrade loses no call, and changes reach the pods that were there before", func(t *testing.T) {
		admitted := admitAllTheTime(t, namespace)
		guide.follow(t, "## 2. The operator")
		expectCallsGoOn(t, pods)
		admitted()
		expectDefinitionsOf(t, shared.Repository)
		changed := changeHash(t, profile, "sha3-512")
		for i := range pods {
			awaitAlgorithm(t, &pods[i], "sha3-512", changed, changeTimeout)
			expectBroker(t, &pods[i], before.broker)
		}
		awaitPropagated(t, profile, 3)
		awaitOperatorPods(t, replicas) // replicas that are being stopped answer until the end, and put their version of the broker into pods
		fresh := createPod(t, appPod(namespace, inject("true"), nil))
		expectBroker(t, fresh, shared.Images.Image("broker"))
		must(t, shared.client.Delete(t.Context(), fresh))
		expectCallsGoOn(t, pods)
	})

	t.Run("an uninstall leaves running pods serving and nothing in the way of others", func(t *testing.T) {
		uninstall(t)
		expectCallsGoOn(t, pods)
		webhooks := shared.clientset.AdmissionregistrationV1()
		if _, err := webhooks.MutatingWebhookConfigurations().Get(t.Context(), environment.Release, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("asking for the mutating webhook: %v, expected it to be gone", err)
		}
		if _, err := webhooks.ValidatingWebhookConfigurations().Get(t.Context(), environment.Release, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("asking for the validating webhook: %v, expected it to be gone", err)
		}
		must(t, shared.client.Create(t.Context(), appPod(namespace, nil, nil)))
		kept := &v1alpha1.CryptoProfile{}
		must(t, shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), kept))
	})

	t.Run("installed again, it takes up the pods and profiles that it finds", func(t *testing.T) {
		helm(func(ctx context.Context) (string, error) { return shared.helm.Install(ctx, ownChart, &shared.Images) })
		// The operator that was uninstalled could not release its lease, which takes 15 s to expire.
		awaitLeader(t)
		changed := changeHash(t, profile, "sha-384")
		for i := range pods {
			awaitAlgorithm(t, &pods[i], "sha-384", changed, changeTimeout)
		}
		awaitPropagated(t, profile, 3)
		expectCallsGoOn(t, pods)
	})

	t.Run("a restart of outdated workloads brings the brokers of the current version", func(t *testing.T) {
		guide.follow(t, "## 3. The brokers")
		for _, pod := range readyPods(t, namespace, "app=app", 3) {
			expectBroker(t, &pod, shared.Images.Image("broker"))
		}
	})
}

// uninstall removes the release, and waits until the pods of the operator are gone, because they answer until their end.
func uninstall(t testing.TB) {
	t.Helper()
	_, err := shared.helm.Uninstall(t.Context())
	must(t, err)
	awaitOperatorPods(t, 0)
}

// deleteLease deletes the lease of an operator that was uninstalled and could not release it. Another operator would wait 15 s
// until it expires.
func deleteLease(t testing.TB) {
	t.Helper()
	must(t, client.IgnoreNotFound(shared.clientset.CoordinationV1().Leases(environment.Namespace).Delete(t.Context(), v1alpha1.LeaderElectionLease, metav1.DeleteOptions{})))
}

// awaitOperatorPods waits until the operator has that many pods.
func awaitOperatorPods(t testing.TB, count int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the operator has %d pods", count), func() error {
		found, err := shared.clientset.CoreV1().Pods(environment.Namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(found.Items) != count {
			err = fmt.Errorf("there are %d", len(found.Items))
		}
		return err
	})
}

// awaitLeader waits until one of the present pods of the operator is the leader.
func awaitLeader(t testing.TB) {
	t.Helper()
	eventually(t, patience, "one of the operator's pods is elected", func() error {
		lease, err := shared.clientset.CoordinationV1().Leases(environment.Namespace).Get(t.Context(), v1alpha1.LeaderElectionLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := shared.clientset.CoreV1().Pods(environment.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		for _, each := range pods.Items {
			if strings.HasPrefix(holder, each.Name+"_") {
				return nil
			}
		}
		return fmt.Errorf("the lease is held by %q", holder)
	})
}

// admitAllTheTime creates pods with a broker as dry runs until the returned function is called. That function fails the test if a
// pod was refused or admitted without a broker.
func admitAllTheTime(t testing.TB, namespace string) (stop func()) {
	t.Helper()
	return askAllTheTime(t, "pods with a broker", func(ctx context.Context) error { return admit(ctx, namespace) })
}

var errWithoutBroker = errors.New("the pod was admitted without exactly one broker")

// admit creates a pod with a broker as a dry run.
func admit(ctx context.Context, namespace string) error {
	pod := appPod(namespace, inject("true"), nil)
	if err := shared.client.Create(ctx, pod, client.DryRunAll); err != nil {
		return err
	}
	if brokersIn(pod) != 1 {
		return errWithoutBroker
	}
	return nil
}

// askAllTheTime repeats a request until the returned function is called. That function fails the test if one of the requests failed.
func askAllTheTime(t testing.TB, what string, ask func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var refusals []error
	asked := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; asked++ {
			if err := ask(ctx); err != nil && ctx.Err() == nil {
				refusals = append(refusals, fmt.Errorf("%s: %w", time.Now().Format("15:04:05.000"), err))
			}
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-done
		t.Logf("%d %s were asked for, %d of them refused", asked, what, len(refusals))
		if len(refusals) > 0 {
			t.Errorf("%d of %d %s were refused, the first at %v, the last at %v", len(refusals), asked, what, refusals[0], refusals[len(refusals)-1])
		}
	}
}

// expectCallsGoOn waits until each application has made 100 more calls and fails the test if one of them failed, or if
// a container of a pod was restarted.
func expectCallsGoOn(t testing.TB, pods []corev1.Pod) {
	t.Helper()
	for i := range pods {
		before := mustStats(t, &pods[i])
		expectNoFailure(t, &pods[i], awaitCalls(t, &pods[i], statsPort, before, 100))
		pod, err := shared.clientset.CoreV1().Pods(pods[i].Namespace).Get(t.Context(), pods[i].Name, metav1.GetOptions{})
		must(t, err)
		for _, each := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if each.RestartCount != 0 {
				t.Errorf("%s of %s was restarted %d times, expected never", each.Name, pod.Name, each.RestartCount)
			}
		}
	}
}
