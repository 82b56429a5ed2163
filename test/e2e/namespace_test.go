// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// newNamespace makes a namespace for one test, and removes it at the end of the test. If the test failed, it first prints what
// happened in the namespace.
func newNamespace(t testing.TB, labels map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: labels}}
	must(t, shared.client.Create(t.Context(), namespace))
	began := time.Now()
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			printDiagnostics(ctx, t, namespace.Name, time.Since(began))
		}
		if err := shared.client.Delete(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("removing the namespace %s: %v", namespace.Name, err)
		}
	})
	// Pods are refused until the controller has made the account.
	eventually(t, patience, "the namespace has its default service account", func() error {
		_, err := shared.clientset.CoreV1().ServiceAccounts(namespace.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return namespace.Name
}

// printDiagnostics logs information that helps to find out why a test in this namespace failed.
func printDiagnostics(ctx context.Context, t testing.TB, namespace string, age time.Duration) {
	since := fmt.Sprintf("--since=%ds", int(age.Seconds())+5)
	for _, arguments := range [][]string{
		{"-n", namespace, "get", "pods", "-o", "wide"},
		{"-n", namespace, "get", "cryptoprofiles", "-o", "yaml"},
		{"get", "clustercryptoprofiles"},
		{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", environment.Namespace, "get", "pods", "-o", "wide"},
		{"-n", environment.Namespace, "logs", "--selector=app.kubernetes.io/name=crypto-broker-operator", "--tail=60", since, "--prefix"},
	} {
		printKubectl(ctx, t, arguments...)
	}
	pods, err := shared.clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Logf("listing the pods of %s: %v", namespace, err)
		return
	}
	for _, pod := range pods.Items {
		printKubectl(ctx, t, "-n", namespace, "logs", pod.Name, "--all-containers", "--prefix", "--tail=25")
	}
}

func printKubectl(ctx context.Context, t testing.TB, arguments ...string) {
	output, err := shared.cluster.KubectlRun(ctx, nil, arguments...)
	if err != nil {
		output += err.Error()
	}
	t.Logf("kubectl %s\n%s", strings.Join(arguments, " "), output)
}
