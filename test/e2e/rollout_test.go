// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// TestARolloutThatBreaksOnePodGoesBackByItself changes a profile so that one of twenty pods may
// not use it any more.
func TestARolloutThatBreaksOnePodGoesBackByItself(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", 19, map[string]string{"WORKERS": "1", "INTERVAL": "200ms"})))
	other := appPod(namespace, inject("true"), map[string]string{"WORKERS": "1", "INTERVAL": "50ms"})
	other.Labels = map[string]string{"app": "other"}
	other.Spec.Containers[0].Name = "other"
	breaking := createPod(t, other)
	pods := append(readyPods(t, namespace, "app=app", 19), *breaking)
	for i := range pods {
		awaitCalls(t, &pods[i], statsPort, nil, 1)
	}

	changeSpec(t, profile, func(spec *v1alpha1.ProfileSpec) {
		spec.API.HashData.HashAlg, spec.Callers = "sha-512", &v1alpha1.Callers{Containers: []string{"app"}}
		spec.Rollout = &v1alpha1.Rollout{OnFailure: v1alpha1.OnFailureReturn}
		for _, weight := range []int32{10, 50, 100} {
			spec.Rollout.Steps = append(spec.Rollout.Steps, v1alpha1.RolloutStep{
				SetWeight: ptr.To(weight), Pause: &v1alpha1.RolloutPause{Duration: &metav1.Duration{Duration: 15 * time.Second}},
			})
		}
	})
	awaitRollout(t, profile, 3*time.Minute, v1alpha1.RolloutReturned)
	if !strings.Contains(profile.Status.Rollout.Message, "calls failed with the new profile") {
		t.Errorf("the rollout went back: %s", profile.Status.Rollout.Message)
	}
	awaitDigests(t, pods, "sha-256", 20)

	// The same change without the mistake stops after its first step.
	changeSpec(t, profile, func(spec *v1alpha1.ProfileSpec) {
		spec.Callers.Containers = []string{"app", "other"}
		spec.Rollout.Steps = []v1alpha1.RolloutStep{{SetWeight: ptr.To[int32](10), Pause: &v1alpha1.RolloutPause{}}}
	})
	awaitRollout(t, profile, time.Minute, v1alpha1.RolloutPaused)
	first := awaitDigests(t, pods, "sha-512", 2)
	before := mustStats(t, &first[0])
	killBroker(t, &first[0])
	eventually(t, patience, "the kubelet has started the broker again", func() error {
		found, err := shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), first[0].Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if brokerStatus(t, found).RestartCount == 0 || brokerStatus(t, found).State.Running == nil {
			return fmt.Errorf("%s", workload.DescribeContainers(found))
		}
		return nil
	})
	awaitCalls(t, &first[0], statsPort, before, 5)
	if again := awaitDigests(t, pods, "sha-512", 2); again[0].Name != first[0].Name || again[1].Name != first[1].Name {
		t.Errorf("pods %s and %s serve the new profile after a restart of the first of %s and %s", again[0].Name, again[1].Name, first[0].Name, first[1].Name)
	}
	run := plugin(t)
	if table := run("profiles", "-n", namespace); !strings.Contains(table, "rolling out") || !strings.Contains(table, "Paused: 10 % of the pods get it") {
		t.Errorf("the plugin shows\n%s", table)
	}
	if output, want := run("promote", "cprof/"+profile.Name, "-n", namespace), "goes on after step 1"; !strings.Contains(output, want) {
		t.Errorf("the plugin says %q, expected %q", output, want)
	}
	awaitRollout(t, profile, time.Minute, v1alpha1.RolloutComplete)
	awaitDigests(t, pods, "sha-512", 20)
}

// awaitDigests waits until so many of the pods got their last digest by an algorithm, and returns
// them.
func awaitDigests(t *testing.T, pods []corev1.Pod, algorithm string, want int) (found []corev1.Pod) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d pods get digests by %s", want, algorithm), func() error {
		found = nil
		for i := range pods {
			seen, err := appStats(t, &pods[i], statsPort)
			if err != nil {
				return err
			}
			if seen.Algorithm == algorithm {
				found = append(found, pods[i])
			}
		}
		if len(found) != want {
			return fmt.Errorf("%d pods do", len(found))
		}
		return nil
	})
	return found
}

// awaitRollout waits for a phase of a rollout.
func awaitRollout(t *testing.T, profile *v1alpha1.CryptoProfile, within time.Duration, phase string) {
	t.Helper()
	eventually(t, within, "the rollout is "+phase, func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
			return err
		}
		if r := profile.Status.Rollout; r == nil || r.Phase != phase {
			return fmt.Errorf("it is %+v", r)
		}
		return nil
	})
}
