// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// The kubelet starts a container at once the first time it ends, and after 10 s the second time.
func TestTheGoClientLosesNoCallWhenItsBrokerIsKilledTwice(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	pod := appPod(namespace, inject("true"), nil)
	pod.Spec.Containers[0].Image = shared.Images.Image("client-app")
	pod = createPod(t, pod)
	found := awaitCalls(t, pod, statsPort, nil, 100)
	for kill := int32(1); kill <= 2; kill++ {
		killBroker(t, pod)
		eventually(t, patience, fmt.Sprintf("the kubelet has started the broker again, time %d", kill), func() error {
			fresh, err := shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			pod = fresh
			if status := brokerStatus(t, pod); status.RestartCount != kill || status.State.Running == nil {
				return fmt.Errorf("%s", workload.DescribeContainers(pod))
			}
			return nil
		})
		found = awaitCalls(t, pod, statsPort, found, 1000)
		t.Logf("after kill %d: %d calls, %d failed, the slowest took %.1f s", kill, found.Calls, found.Failed, found.SlowestMilliseconds/1000)
	}
	if found.Failed > 0 {
		t.Errorf("%d of %d calls failed, expected none: %q", found.Failed, found.Calls, found.Errors)
	}
	if found.SlowestMilliseconds < 1000 {
		t.Errorf("the slowest call took %.0f ms, expected one that waited for the kubelet", found.SlowestMilliseconds)
	}
	for _, each := range pod.Status.ContainerStatuses {
		if each.RestartCount != 0 || each.State.Running == nil {
			t.Errorf("found the container %s as %+v, expected it to run on", each.Name, corev1.ContainerStatus{RestartCount: each.RestartCount, State: each.State})
		}
	}
}
