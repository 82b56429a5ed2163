// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// plugin runs kubectl crypto-broker with arguments, as the administrator of the cluster.
func plugin(t testing.TB) func(arguments ...string) string {
	t.Helper()
	run := pluginThatEndsWith(t)
	return func(arguments ...string) string {
		t.Helper()
		return run(0, arguments...)
	}
}

// pluginThatEndsWith does the same and expects an exit code.
func pluginThatEndsWith(t testing.TB) func(code int, arguments ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubectl-crypto_broker")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/kubectl-crypto_broker").CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, output)
	}
	return func(code int, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, append(arguments, "--kubeconfig", shared.cluster.Kubeconfig)...)
		var errs strings.Builder
		command.Stderr = &errs
		output, err := command.Output()
		if found := command.ProcessState.ExitCode(); found != code {
			t.Fatalf("kubectl crypto-broker %s: exit code %d (%v), expected %d\n%s%s", strings.Join(arguments, " "), found, err, code, output, errs.String())
		}
		return string(output)
	}
}

// seenPod is the plugin's output about a pod.
type seenPod struct{ Pod, Workload, Broker, Set, Digest, Reason, Note string }

func seenPods(t testing.TB, output string) []seenPod {
	t.Helper()
	var answer struct{ Pods []seenPod }
	if err := json.Unmarshal([]byte(output), &answer); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return answer.Pods
}

func TestAPodThatMissesItsBrokerIsFoundToldAndRestarted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha3-512")
	app := appDeployment(namespace, "app", 2, nil)
	app.Spec.Template.Annotations = nil
	must(t, shared.client.Create(t.Context(), app))
	readyPods(t, namespace, "app=app", 2)

	// The namespace asks for brokers only after its pods are there.
	must(t, shared.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, contract.InjectionLabel, contract.InjectionEnabled))))
	eventually(t, patience, "the Deployment is told that its pods have no broker", func() error {
		events, err := shared.clientset.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, each := range events.Items {
			if isMissing(each, app) {
				return nil
			}
		}
		return fmt.Errorf("found %d other events", len(events.Items))
	})

	run, explain := plugin(t), pluginThatEndsWith(t)
	for _, pod := range seenPods(t, run("missing", "-n", namespace, "-o", "json")) {
		if pod.Broker != "missing" || pod.Workload != "deployment/app" {
			t.Errorf("found %+v", pod)
		}
		if explained := explain(1, "explain", pod.Pod, "-n", namespace); !strings.Contains(explained, "kubectl crypto-broker restart deployment/app -n "+namespace) {
			t.Errorf("found the explanation\n%s", explained)
		}
	}
	t.Log(run("restart", "--missing", "-n", namespace, "--yes", "--timeout", "90s"))

	readyPods(t, namespace, "app=app", 2)
	awaitPropagated(t, profile, 2)
	eventually(t, patience, "both pods serve the set", func() error {
		pods := seenPods(t, run("pods", "-n", namespace, "-o", "json"))
		for _, pod := range pods {
			if pod.Broker != "current" || pod.Set != "updated" || pod.Digest != profile.Status.Digest {
				return fmt.Errorf("found %+v, expected the digest %s", pod, profile.Status.Digest)
			}
		}
		if len(pods) != 2 {
			return fmt.Errorf("found %d pods", len(pods))
		}
		return nil
	})
	t.Log(run("pods", "-n", namespace))
	if ptr.Deref(profile.Status.Strength, 0) != 256 || profile.Status.FIPS != v1alpha1.FIPSApproved {
		t.Errorf("found the strength %v and FIPS %q of a profile that hashes by SHA3-512", profile.Status.Strength, profile.Status.FIPS)
	}
}

func TestTheInstallationIsFoundSound(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	output := plugin(t)("check", "-n", namespace)
	t.Log(output)
	if strings.Contains(output, "SKIPPED") || strings.Contains(output, "FAILED") {
		t.Errorf("found\n%s", output)
	}
}

func isMissing(event eventsv1.Event, app *appsv1.Deployment) bool {
	return event.Reason == "BrokerMissing" && event.Regarding.UID == app.UID && strings.Contains(event.Note, "2 of 2 pods are without a broker")
}
