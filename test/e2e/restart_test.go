// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

func TestABrokerThatIsKilledServesAllItsContainersAgainWithoutARestartOfTheirs(t *testing.T) {
	t.Parallel()
	const containers = 5
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	pod := appPod(namespace, inject("true"), nil)
	pod.Spec.Containers = nil
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, appContainer(fmt.Sprintf("app-%d", i), map[string]string{
			"STATS_ADDRESS": fmt.Sprintf(":%d", statsPort+i)}))
	}
	pod = createPod(t, pod)
	before := make([]*stats.Stats, containers)
	for i := range containers {
		before[i] = awaitCalls(t, pod, statsPort+i, nil, 10)
	}
	killBroker(t, pod)
	var restarts int32
	eventually(t, patience, "the kubelet has started the broker again", func() error {
		found, err := shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod = found
		if restarts = brokerStatus(t, pod).RestartCount; restarts == 0 || brokerStatus(t, pod).State.Running == nil {
			return fmt.Errorf("%s", workload.DescribeContainers(pod))
		}
		return nil
	})
	for i := range containers {
		after := awaitCalls(t, pod, statsPort+i, before[i], 50)
		t.Logf("app-%d: %d calls, %d failed, %d repeated; the slowest took %.1f s", i, after.Calls, after.Failed, after.Retries,
			after.SlowestMilliseconds/1000)
		if !after.Started.Equal(before[i].Started) {
			t.Errorf("app-%d was started again at %s", i, after.Started)
		}
		if after.Retries == before[i].Retries {
			t.Errorf("app-%d repeated no call, expected the broker to have been away", i)
		}
	}
	for _, each := range pod.Status.ContainerStatuses {
		if each.RestartCount != 0 {
			t.Errorf("%s was restarted %d times, expected never", each.Name, each.RestartCount)
		}
	}
}

// killBroker ends the broker of a pod with signal 9.
func killBroker(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	id, tasks := brokerStatus(t, pod).ContainerID, runningTasks(t)
	if tasks[id] == "" {
		t.Fatalf("the broker's container %s is not among the running tasks of containerd: %q", id, tasks)
	}
	_, err := shared.cluster.Exec(t.Context(), "kill", "-KILL", tasks[id])
	must(t, err)
}

// runningTasks are the process ids in the node of all containers that run, by the ids that pods' statuses give them.
func runningTasks(t testing.TB) map[string]string {
	t.Helper()
	processes, err := shared.load.Tasks(t.Context())
	must(t, err)
	return processes
}

func brokerStatus(t testing.TB, pod *corev1.Pod) corev1.ContainerStatus {
	t.Helper()
	for _, each := range pod.Status.InitContainerStatuses {
		if each.Name == contract.BrokerContainer {
			return each
		}
	}
	t.Fatalf("the pod %s has no broker: %s", pod.Name, workload.DescribeContainers(pod))
	return corev1.ContainerStatus{}
}
