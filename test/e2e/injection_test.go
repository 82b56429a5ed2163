// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// restricted makes a namespace refuse every pod that the Pod Security Standard "restricted" forbids.
var restricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

func TestADeploymentsPodsHashThroughTheirOwnBrokers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha3-512")
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", 2, nil)))
	for _, pod := range readyPods(t, namespace, "app=app", 2) {
		found := awaitCalls(t, &pod, statsPort, nil, 20)
		expectNoFailure(t, &pod, found)
		if found.Algorithm != "sha3-512" {
			t.Errorf("%s: found the algorithm %q, expected sha3-512", pod.Name, found.Algorithm)
		}
		broker := pod.Spec.InitContainers[0]
		if broker.Name != contract.BrokerContainer || ptr.Deref(broker.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			t.Errorf("%s: found the first init container %s with the restart policy %v, expected the broker as a sidecar",
				pod.Name, broker.Name, ptr.Deref(broker.RestartPolicy, ""))
		}
		if broker.SecurityContext != nil && ptr.Deref(broker.SecurityContext.RunAsUser, 0) == workload.AppUser {
			t.Errorf("%s: the broker runs as user %d like the application, so the test says nothing about users", pod.Name, workload.AppUser)
		}
	}
	awaitPropagated(t, profile, 2)
}

func TestAJobCompletesWithItsBroker(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha-256")
	pod := appPod(namespace, inject("true"), map[string]string{"CALLS": "50", "INTERVAL": "1ms"})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	// An init container after the broker can call it, too.
	pod.Spec.InitContainers = []corev1.Container{appContainer("prepare", map[string]string{"CALLS": "5", "INTERVAL": "1ms"})}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations},
				Spec:       pod.Spec,
			},
		},
	}
	must(t, shared.client.Create(t.Context(), job))
	eventually(t, patience, "the job is complete", func() error {
		found, err := shared.clientset.BatchV1().Jobs(namespace).Get(t.Context(), "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found.Status.Succeeded != 1 || found.Status.CompletionTime == nil {
			return fmt.Errorf("its status is %+v", found.Status)
		}
		return nil
	})
	pods, err := shared.clientset.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=app"})
	must(t, err)
	for container, calls := range map[string]int64{"prepare": 5, "app": 50} {
		final := lastStats(t, &pods.Items[0], container)
		if final.Calls != calls || final.Failed != 0 || final.Retries != 0 {
			t.Errorf("%s: found %+v, expected %d calls and no failed one", container, final, calls)
		}
	}
}

// lastStats reads the counts of an application that has ended from its last line of output.
func lastStats(t testing.TB, pod *corev1.Pod, container string) stats.Stats {
	t.Helper()
	log, err := shared.clientset.CoreV1().Pods(pod.Namespace).
		GetLogs(pod.Name, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	var last struct {
		Event string
		Stats stats.Stats
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Event != "ended" {
		t.Fatalf("%s: found the log %q (%v), expected it to end with the counts", container, log, err)
	}
	return last.Stats
}

func TestABarePodUnderPodSecurityRestrictedHashesAsAnotherUserThanTheBroker(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	createProfile(t, namespace, "sha-384")
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))

	// The namespace has to refuse pods that are not restricted, or the test would prove nothing.
	loose := appPod(namespace, nil, nil)
	loose.Spec.Containers[0].SecurityContext = nil
	expectRefused(t, shared.client.Create(t.Context(), loose), "PodSecurity")
}

func TestInALabelledNamespacePodsGetABrokerUnlessTheyOptOut(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, map[string]string{contract.InjectionLabel: contract.InjectionEnabled})
	createProfile(t, namespace, "sha-512")
	pod := createPod(t, appPod(namespace, nil, nil))
	expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))

	out := appPod(namespace, inject("false"), nil)
	must(t, shared.client.Create(t.Context(), out))
	if hasBroker(out) {
		t.Errorf("a pod that opted out got a broker: %+v", out.Spec.InitContainers)
	}
	expectRefused(t, shared.client.Create(t.Context(), appPod(namespace, inject("no"), nil)), contract.InjectAnnotation, `"no"`, "true", "false")
}

func TestAnAnnotationThatIsNeitherTrueNorFalseIsRefusedWithASentence(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	for _, value := range []string{"True", "yes", "1", ""} {
		err := shared.client.Create(t.Context(), appPod(namespace, inject(value), nil))
		expectRefused(t, err, contract.InjectAnnotation, fmt.Sprintf("%q", value), `"true"`, `"false"`)
	}
	plain := appPod(namespace, inject("false"), nil)
	must(t, shared.client.Create(t.Context(), plain))
	if hasBroker(plain) {
		t.Error(`a pod with the annotation "false" got a broker`)
	}
}

func TestAPodWaitsForItsFirstProfileAndThenHashes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	pod := appPod(namespace, inject("true"), nil)
	must(t, shared.client.Create(t.Context(), pod))
	eventually(t, patience, "the broker runs and says that it has no profiles", func() error {
		found, err := brokerProfiles(t, pod)
		if err == nil && (found.Digest != "" || found.Reason != "NoProfiles") {
			t.Fatalf("found %+v, expected no digest and the reason NoProfiles", found)
		}
		return err
	})
	if found, err := appStats(t, pod, statsPort); err == nil {
		t.Errorf("the application runs without a profile: %+v", found)
	}
	createProfile(t, namespace, "sha3-256")
	eventually(t, patience, "the pod is ready", func() error {
		found, err := shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil && !workload.Ready(found) {
			err = fmt.Errorf("%s", workload.DescribeContainers(found))
		}
		return err
	})
	expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))
}
