// SPDX-License-Identifier: Apache-2.0

//go:build e2e && alerts

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// provokeProfiles causes the reasons of the alerts about profiles.
func provokeProfiles(t *testing.T, a *alerting) {
	withheld := withholdAProfile(t)
	namespace := newNamespace(t, nil)
	old := hashing("Legacy", "sha-384")
	old.Deprecation = &v1alpha1.Deprecation{ReplacedBy: "Default"}
	must(t, shared.client.Create(t.Context(), &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "legacy", Namespace: namespace}, Spec: old}))
	createPod(t, appPod(namespace, inject("true"), map[string]string{"PROFILE": "Legacy"}))

	failARollout(t)
	a.expect(t, "CryptoBrokerProfileDegraded", "exported_namespace", withheld, "kind", "CryptoProfile", "reason", "NotAccepted")
	a.expect(t, "CryptoBrokerProfileWithheld", "exported_namespace", withheld)
	a.expect(t, "CryptoBrokerDeprecatedProfileUsed", "namespace", namespace, "profile", "Legacy")
	a.expect(t, "CryptoBrokerRolloutFailed")
}

// failARollout rolls out a profile that one of two pods may not use.
func failARollout(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	for _, name := range []string{"app", "other"} {
		pod := appPod(namespace, inject("true"), map[string]string{"INTERVAL": "50ms"})
		pod.Spec.Containers[0].Name = name
		awaitCalls(t, createPod(t, pod), statsPort, nil, 1)
	}
	changeSpec(t, profile, func(spec *v1alpha1.ProfileSpec) {
		spec.Callers = &v1alpha1.Callers{Containers: []string{"app"}}
		spec.Rollout = &v1alpha1.Rollout{}
		for _, weight := range []int32{50, 100} {
			spec.Rollout.Steps = append(spec.Rollout.Steps, v1alpha1.RolloutStep{
				SetWeight: ptr.To(weight), Pause: &v1alpha1.RolloutPause{Duration: &metav1.Duration{Duration: 30 * time.Second}}})
		}
	})
}

// provokeBrokers causes the reasons of the alerts about keys, refusals and memory.
func provokeBrokers(t *testing.T, a *alerting) {
	namespace := newNamespace(t, nil)
	must(t, shared.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: namespace},
		Data: map[string][]byte{"orders.key": []byte("no key")}}))
	profile := createProfile(t, namespace, "sha3-512")
	withKeys := createPod(t, appPod(namespace, annotated("keys", "keys"), nil))
	a.expect(t, "CryptoBrokerKeysUnusable", "namespace", namespace, "pod", withKeys.Name)

	changeSpec(t, profile, func(spec *v1alpha1.ProfileSpec) { spec.Callers = &v1alpha1.Callers{Containers: []string{"other"}} })
	a.expect(t, "CryptoBrokerRefusalsAfterChange", "namespace", namespace, "profile", "Default")

	namespace = newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	full := createPod(t, appPod(namespace, annotated("memory-limit", "32Mi"), map[string]string{"WORKERS": "1000", "INTERVAL": "1ms"}))
	a.expect(t, "CryptoBrokerMemoryHigh", "namespace", namespace, "pod", full.Name)
}

// annotated returns the annotation that asks for a broker and another one.
func annotated(name, value string) map[string]string {
	annotations := inject("true")
	annotations[contract.AnnotationPrefix+name] = value
	return annotations
}

// loseAuditRecords makes a broker write audit records that nobody reads.
func loseAuditRecords(t *testing.T, a *alerting) {
	pod := auditedPod(t, v1alpha1.Audit{Level: "all"}, load)
	blockOutput(t, pod)
	a.expect(t, "CryptoBrokerAuditRecordsLost", "namespace", pod.Namespace, "pod", pod.Name)
}

// failForLackOfRecords makes a profile require records that nobody reads, so each call waits for five seconds and fails. There were
// only few calls before, so the share of slow calls soon becomes high.
func failForLackOfRecords(t *testing.T, a *alerting) {
	pod := auditedPod(t, v1alpha1.Audit{Level: "all", Required: true}, map[string]string{"WORKERS": "20", "INTERVAL": "1s"})
	blockOutput(t, pod)
	a.expect(t, "CryptoBrokerErrors", "namespace", pod.Namespace)
	a.expect(t, "CryptoBrokerSlow", "namespace", pod.Namespace, "operation", "HashData")
}

// auditedPod makes a pod in a namespace of its own whose profile has calls recorded.
func auditedPod(t *testing.T, audit v1alpha1.Audit, options map[string]string) *corev1.Pod {
	t.Helper()
	namespace := newNamespace(t, nil)
	spec := hashing("Default", "sha3-512")
	spec.Audit = &audit
	must(t, shared.client.Create(t.Context(), &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}, Spec: spec}))
	pod := createPod(t, appPod(namespace, inject("true"), options))
	awaitCalls(t, pod, statsPort, nil, 10)
	return pod
}

// signalOfNode sends a signal to a process of the node, and another one when the test ends.
func signalOfNode(t *testing.T, process, signal, atEnd string) {
	t.Helper()
	_, err := shared.cluster.Exec(t.Context(), "kill", "-"+signal, process)
	must(t, err)
	t.Cleanup(func() {
		// The process may have ended.
		if output, err := shared.cluster.Exec(timeoutContext(t, time.Minute), "kill", "-"+atEnd, process); err != nil {
			t.Logf("signal %s of the process %s: %v %s", atEnd, process, err, output)
		}
	})
}

// brokerTask returns the process of the broker of a pod, in the node.
func brokerTask(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	process := runningTasks(t)[brokerStatus(t, pod).ContainerID]
	if process == "" {
		t.Fatalf("the broker of %s does not run: %s", pod.Name, workload.DescribeContainers(pod))
	}
	return process
}

// blockOutput stops the process of containerd that reads what the containers of a pod write to their standard error.
func blockOutput(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	status, err := shared.cluster.Exec(t.Context(), "cat", "/proc/"+brokerTask(t, pod)+"/status")
	must(t, err)
	signalOfNode(t, fmt.Sprint(numbers(t, status, "PPid:")[0]), "STOP", "CONT")
}

// provokePods causes the reasons of the alerts about pods.
func provokePods(t *testing.T, a *alerting, values []string) {
	a.expect(t, "CryptoBrokerPodsWithoutBroker", "exported_namespace", missABroker(t))

	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha3-512")
	createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 1)
	start := stopKubelet(t)
	changeHash(t, profile, "sha-256")
	a.expect(t, "CryptoBrokerPodsBehind", "exported_namespace", namespace)
	start()
	awaitPropagated(t, profile, 1)

	install(t, append(values, "broker.requireFIPS=true")...)
	frozen := createPod(t, appPod(namespace, inject("true"), nil))
	a.expect(t, "CryptoBrokerPodsOutdated", "exported_namespace", namespace)
	a.expect(t, "CryptoBrokerFIPSNotEnforced", "namespace", namespace, "enforced", "false")

	signalOfNode(t, brokerTask(t, frozen), "STOP", "CONT")
	changeHash(t, profile, "sha3-512")
	a.expect(t, "CryptoBrokerPodsUnverified", "exported_namespace", namespace)
}

// stopKubelet stops the kubelet. The returned function starts it again, and so does the end of the test.
func stopKubelet(t *testing.T) (start func()) {
	t.Helper()
	must(t, shared.cluster.Stop(t.Context(), "kubelet"))
	start = sync.OnceFunc(func() { must(t, shared.cluster.Start(timeoutContext(t, time.Minute), "kubelet")) })
	t.Cleanup(start)
	return start
}

// provokeOperator causes the reasons of the alerts about the operator.
func provokeOperator(t *testing.T, a *alerting) {
	provider := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: "e2e-absent"}}
	provider.Spec.Type = "kmip"
	provider.Spec.Endpoints = []v1alpha1.KeyEndpoint{"kmip.invalid:5696"}
	provider.Spec.Credentials = &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "absent"}}
	must(t, shared.client.Create(t.Context(), provider))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(shared.client.Delete(timeoutContext(t, time.Minute), provider))) })
	a.expect(t, "CryptoBrokerKeyProviderNotReady", "name", provider.Name)

	a.expectQuiet(t, "CryptoBrokerSigningKeyOld")
	since := time.Now().Add(-101 * 24 * time.Hour).UTC().Format(time.RFC3339)
	mustKubectl(t, "annotate", "secret", "-n", environment.Namespace, environment.Release+"-signing", "--overwrite", "cryptobroker.io/signing-key-current-since="+since)
	a.expect(t, "CryptoBrokerSigningKeyOld")

	a.expectQuiet(t, "CryptoBrokerCertificateExpires")
	letAuthorityExpire(t)
	a.expect(t, "CryptoBrokerCertificateExpires", "certificate", "ca")

	a.expectQuiet(t, "CryptoBrokerWebhookFailing")
	mustKubectl(t, "delete", "validatingwebhookconfiguration", environment.Release)
	a.expect(t, "CryptoBrokerWebhookFailing")

	a.expectQuiet(t, "CryptoBrokerKeyAccessHeldBack")
	holdPoliciesBack(t, a)

	a.expectQuiet(t, "CryptoBrokerOperatorDown")
	stopOperator(t)
	a.expect(t, "CryptoBrokerOperatorDown")
}

func mustKubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := kubectl(t, "", arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return output
}
