// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// refusedForItsRevision matches metrics of a broker that refused a set because of its revision.
var refusedForItsRevision = regexp.MustCompile(`(?m)^crypto_broker_profiles_rejections_total\{reason="RevisionRejected"\} [1-9]`)

// The test restores the suite's own cluster. No other test runs at the same time, and the backup is made during this test, so other
// tests lose nothing.
func TestEtcdIsRestoredFromABackupUnderRunningPods(t *testing.T) {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 1)
	inBackup, err := brokerProfiles(t, pod)
	must(t, err)
	backup := filepath.Join(t.TempDir(), "etcd.snapshot")
	must(t, shared.cluster.Snapshot(t.Context(), os.Stderr, backup))

	// The backup does not have these changes: another signing key, a stronger profile, and a pod that trusts only that key and
	// accepts no older set.
	rotateSigningKey(t, pod)
	awaitAlgorithm(t, pod, "sha3-512", changeHash(t, profile, "sha3-512"), changeTimeout)
	late := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 2)
	served, err := brokerProfiles(t, pod)
	must(t, err)

	// While the operator is stopped, the test sees what brokers do by themselves.
	end := holdOperator(t)
	must(t, shared.cluster.Restore(t.Context(), os.Stderr, backup))
	must(t, shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile))
	if found := profile.Spec.API.HashData.HashAlg; found != "sha-256" {
		t.Fatalf("the restored profile has the algorithm %s, expected sha-256 as in the backup", found)
	}
	t.Run("brokers refuse the set of the backup and serve on", func(t *testing.T) {
		expected := served
		expected.Reason = "RevisionRejected"
		var touched time.Time
		eventually(t, patience, "the broker refuses it", func() error {
			// The kubelet, too, takes a moment until it watches the restored ConfigMap.
			if time.Since(touched) > time.Second {
				touch(t, shared.client, pod)
				touched = time.Now()
			}
			found, err := brokerProfiles(t, pod)
			if err == nil && found != expected {
				err = fmt.Errorf("it says %+v", found)
			}
			return err
		})
		metrics, err := podGet(t.Context(), pod, brokerStatusPort, "metrics")
		must(t, err)
		if !refusedForItsRevision.Match(metrics) {
			t.Errorf("the broker's metrics count no refusal:\n%s", metrics)
		}
		expectAlgorithms(t, awaitCalls(t, pod, statsPort, mustStats(t, pod), 20), "sha-256", "sha3-512")
	})
	t.Run("a pod of after the backup ends", func(t *testing.T) {
		_, err := shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), late.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("asked for it, the API server says %v, expected that it is not found", err)
		}
		eventually(t, patience, "the kubelet has ended its containers", func() error {
			if id := brokerStatus(t, late).ContainerID; runningTasks(t)[id] != "" {
				return fmt.Errorf("%s runs", id)
			}
			return nil
		})
	})

	deleteLease(t) // the operator, which was killed, cannot release the lease
	began := time.Now()
	end()
	t.Run("the operator signs what the restored resources say with a higher revision", func(t *testing.T) {
		awaitAlgorithm(t, pod, "sha-256", began, 90*time.Second)
		found, err := brokerProfiles(t, pod)
		must(t, err)
		if found.Digest != inBackup.Digest || found.Revision <= served.Revision || found.Reason != "Loaded" {
			t.Errorf("the broker says %+v, expected the digest %s and a revision above %d", found, inBackup.Digest, served.Revision)
		}
		awaitPropagated(t, profile, 1)
		if meta.IsStatusConditionTrue(profile.Status.Conditions, v1alpha1.ConditionDowngradeWithheld) {
			t.Errorf("what was restored is withheld: %+v", profile.Status.Conditions)
		}
	})
	t.Run("new pods trust the key of the backup and serve the same", func(t *testing.T) {
		must(t, shared.load.ScaleOperator(t.Context(), replicas)) // this waits until all brokers answer
		fresh := createPod(t, appPod(namespace, inject("true"), nil))
		if trustedKeys(t, fresh) != trustedKeys(t, pod) {
			t.Errorf("they trust %s, expected %s", trustedKeys(t, fresh), trustedKeys(t, pod))
		}
		awaitPropagated(t, profile, 2)
		expectAlgorithms(t, awaitCalls(t, fresh, statsPort, nil, 10), "sha-256")
		changed := changeHash(t, profile, "sha-512")
		for _, each := range []*corev1.Pod{pod, fresh} {
			awaitAlgorithm(t, each, "sha-512", changed, changeTimeout)
		}
	})
	found := mustStats(t, pod)
	expectAlgorithms(t, found, "sha-256", "sha3-512", "sha-256", "sha-512")
	expectNoFailure(t, pod, found)
}

func TestASigningSecretThatIsPutBackAloneIsReportedAndBrokersServeOn(t *testing.T) {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	old := createPod(t, appPod(namespace, inject("true"), nil))
	secrets := shared.clientset.CoreV1().Secrets(environment.Namespace)
	secret, err := secrets.Get(t.Context(), environment.Release+"-signing", metav1.GetOptions{})
	must(t, err)
	inBackup := secret.Data
	rotateSigningKey(t, old)
	fresh := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 2)

	secret, err = secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
	must(t, err)
	secret.Data = inBackup
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	must(t, err)
	awaitTrust(t, namespace, "the key of the backup", func(keys string) bool { return keys == trustedKeys(t, old) })
	awaitAlgorithm(t, old, "sha3-512", changeHash(t, profile, "sha3-512"), changeTimeout)
	eventually(t, patience, "the profile's status says that a broker refuses the set", func() error {
		must(t, shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile))
		degraded := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionDegraded)
		if degraded == nil || degraded.Status != metav1.ConditionTrue || degraded.Reason != v1alpha1.ReasonSetRefused {
			return fmt.Errorf("it says %+v", degraded)
		}
		t.Logf("Degraded: %s", degraded.Message)
		return nil
	})
	if found, err := brokerProfiles(t, fresh); err != nil || found.Reason != "SignatureRejected" {
		t.Errorf("the broker that trusts another key says %+v (%v), expected SignatureRejected", found, err)
	}
	found := awaitCalls(t, fresh, statsPort, mustStats(t, fresh), 20)
	expectAlgorithms(t, found, "sha-256")
	expectNoFailure(t, fresh, found)

	// The same as a restart of the workload.
	must(t, shared.client.Delete(t.Context(), fresh))
	createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 2)
	expectNoFailure(t, old, mustStats(t, old))
}

// expectAlgorithms fails the test unless an application saw these algorithms, one after the other.
func expectAlgorithms(t testing.TB, found *stats.Stats, expected ...string) {
	t.Helper()
	var seen []string
	for _, each := range found.Observed {
		seen = append(seen, each.Algorithm)
	}
	if !slices.Equal(seen, expected) {
		t.Errorf("the application saw the algorithms %q, expected %q", seen, expected)
	}
}

// holdOperator stops the processes of all replicas until end is called or the test ends. Then it kills them, and they start again,
// as after an outage of the API server that is longer than the leader's lease.
func holdOperator(t testing.TB) (end func()) {
	t.Helper()
	pods, err := shared.clientset.CoreV1().Pods(environment.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=" + environment.Release})
	must(t, err)
	tasks := runningTasks(t)
	var processes []string
	for _, pod := range pods.Items {
		for _, each := range pod.Status.ContainerStatuses {
			if process, ok := tasks[each.ContainerID]; ok {
				processes = append(processes, process)
			}
		}
	}
	if len(processes) != replicas {
		t.Fatalf("found %d processes of the operator, expected %d; the tasks of containerd are %q", len(processes), replicas, slices.Collect(maps.Keys(tasks)))
	}
	held := true
	end = func() {
		if !held {
			return
		}
		held = false
		if _, err := shared.cluster.Exec(timeoutContext(t, 30*time.Second), append([]string{"kill", "-KILL"}, processes...)...); err != nil {
			t.Errorf("ending the operator: %v", err)
		}
	}
	t.Cleanup(end)
	_, err = shared.cluster.Exec(t.Context(), append([]string{"kill", "-STOP"}, processes...)...)
	must(t, err)
	return end
}
