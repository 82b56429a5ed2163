// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestAPodThatWaitsForASecretOfItsKeysIsExplained(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha-256")
	app := appDeployment(namespace, "app", 1, nil)
	app.Spec.Template.Annotations[contract.KeysAnnotation] = "broker-keys"
	must(t, shared.client.Create(t.Context(), app))
	run := pluginThatEndsWith(t)
	eventually(t, patience, "the Secret that is missing is named", func() error {
		pods, err := shared.clientset.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=app"})
		if err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("found %d pods: %w", len(pods.Items), err)
		}
		for _, what := range []string{pods.Items[0].Name, "deployment/app"} {
			if said := run(1, "explain", what, "-n", namespace); !strings.Contains(said, "kubectl create secret generic broker-keys -n "+namespace) {
				return fmt.Errorf("found the explanation\n%s", said)
			}
		}
		return nil
	})
}

// No other test may run at the same time, because its brokers would refuse their sets.
func TestWorkloadsWhoseBrokersTrustASigningKeyThatIsGoneAreFoundExplainedAndRestarted(t *testing.T) {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "early", 1, nil)))
	early := readyPods(t, namespace, "app=early", 1)[0]
	awaitPropagated(t, profile, 1)

	must(t, shared.clientset.CoreV1().Secrets(environment.Namespace).Delete(t.Context(), environment.Release+"-signing", metav1.DeleteOptions{}))
	awaitTrust(t, namespace, "another key", func(keys string) bool { return keys != trustedKeys(t, &early) })
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "late", 1, nil)))
	readyPods(t, namespace, "app=late", 1)

	run := pluginThatEndsWith(t)
	sets := func() map[string]string {
		found := map[string]string{}
		for _, pod := range seenPods(t, run(0, "pods", "-n", namespace, "-o", "json")) {
			found[pod.Workload] = strings.TrimSpace(pod.Set + " " + pod.Reason)
		}
		return found
	}
	eventually(t, changeTimeout, "the broker of the early pod refuses the set, and the other serves it", func() error {
		if found := sets(); found["deployment/early"] != "refused SignatureRejected" || found["deployment/late"] != "updated Loaded" {
			return fmt.Errorf("found %q", found)
		}
		return nil
	})
	for _, what := range []string{early.Name, "deployment/early"} {
		said := run(1, "explain", what, "-n", namespace)
		for _, says := range []string{"SignatureRejected", "kubectl crypto-broker restart deployment/early -n " + namespace, "kubectl crypto-broker restart --refused -n " + namespace} {
			if !strings.Contains(said, says) {
				t.Errorf("explain %s: %q is not in\n%s", what, says, said)
			}
		}
	}
	run(0, "explain", "deployment/late", "-n", namespace)
	if said := run(0, "restart", "--refused", "-n", namespace, "--yes", "--timeout", "90s"); !strings.Contains(said, "1/1 deployment/early in namespace "+namespace+": done after") {
		t.Errorf("found\n%s", said)
	}
	readyPods(t, namespace, "app=early", 1)
	eventually(t, patience, "both brokers serve the set", func() error {
		if found := sets(); found["deployment/early"] != "updated Loaded" || found["deployment/late"] != "updated Loaded" {
			return fmt.Errorf("found %q", found)
		}
		return nil
	})
	if said := run(0, "restart", "--refused", "-n", namespace, "--yes"); said != "Nothing to restart.\n" {
		t.Errorf("found\n%s", said)
	}
	awaitPropagated(t, profile, 2)
}
