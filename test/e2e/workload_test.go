// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

const (
	statsPort = workload.StatsPort
	// brokerStatusPort is the chart's default.
	brokerStatusPort = 9470
)

// appContainer returns a container that calls its broker. environment has the options of the application.
func appContainer(name string, environment map[string]string) corev1.Container {
	return shared.load.Container(name, environment)
}

// appPod returns a pod with one application and with annotations.
func appPod(namespace string, annotations, environment map[string]string) *corev1.Pod {
	return shared.load.Pod(namespace, annotations, environment)
}

// inject returns the annotation that asks for a broker.
func inject(value string) map[string]string {
	return workload.Inject(value)
}

// appDeployment returns a Deployment of such pods.
func appDeployment(namespace, name string, replicas int32, environment map[string]string) *appsv1.Deployment {
	return shared.load.Deployment(namespace, name, replicas, environment)
}

// readyPods waits until that many pods with a label are ready and returns them.
func readyPods(t testing.TB, namespace, label string, count int) []corev1.Pod {
	t.Helper()
	var ready []corev1.Pod
	eventually(t, patience, fmt.Sprintf("%d pods of %s with %s are ready", count, namespace, label), func() error {
		list, err := shared.clientset.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err
		}
		ready = ready[:0]
		for _, each := range list.Items {
			if workload.Ready(&each) {
				ready = append(ready, each)
			}
		}
		if len(ready) != count {
			return fmt.Errorf("%d of %d pods are ready", len(ready), len(list.Items))
		}
		return nil
	})
	return ready
}

// createPod makes a pod and waits until it is ready.
func createPod(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	must(t, shared.client.Create(t.Context(), pod))
	name := pod.Name
	eventually(t, patience, "the pod "+name+" is ready", func() error {
		found, err := shared.clientset.CoreV1().Pods(pod.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !workload.Ready(found) {
			return fmt.Errorf("it is %s: %s", found.Status.Phase, workload.DescribeContainers(found))
		}
		pod = found
		return nil
	})
	return pod
}

// hasBroker reports whether the pod has a broker.
func hasBroker(pod *corev1.Pod) bool {
	for _, each := range pod.Spec.InitContainers {
		if each.Name == contract.BrokerContainer {
			return true
		}
	}
	return false
}

// podGet sends a GET request to a pod's port through the API server.
func podGet(ctx context.Context, pod *corev1.Pod, port int, path string) ([]byte, error) {
	return shared.clientset.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").
		Name(pod.Name + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix(path).Timeout(5 * time.Second).DoRaw(ctx)
}

// appStats asks the application in a pod for its counts.
func appStats(t testing.TB, pod *corev1.Pod, port int) (*stats.Stats, error) {
	data, err := podGet(t.Context(), pod, port, "stats")
	if err != nil {
		return nil, err
	}
	found := &stats.Stats{}
	return found, json.Unmarshal(data, found)
}

// mustStats does the same as appStats, and fails the test if the application does not answer.
func mustStats(t testing.TB, pod *corev1.Pod) *stats.Stats {
	t.Helper()
	found, err := appStats(t, pod, statsPort)
	must(t, err)
	return found
}

// awaitCalls waits until the application has made that many more calls since before (nil: since its start).
func awaitCalls(t testing.TB, pod *corev1.Pod, port int, before *stats.Stats, more int64) *stats.Stats {
	t.Helper()
	var found *stats.Stats
	eventually(t, patience, fmt.Sprintf("the application in %s has made %d more calls", pod.Name, more), func() (err error) {
		if found, err = appStats(t, pod, port); err != nil {
			return err
		}
		made := found.Calls - found.Failed
		if before != nil {
			made -= before.Calls - before.Failed
		}
		if made < more {
			return fmt.Errorf("it has made %d: %+v", made, *found)
		}
		return nil
	})
	return found
}

// expectNoFailure fails the test if a call of the application failed or had to be repeated.
func expectNoFailure(t testing.TB, pod *corev1.Pod, found *stats.Stats) {
	t.Helper()
	if found.Failed > 0 || found.HealthFailed > 0 || found.Retries > 0 {
		t.Errorf("%s: found %d of %d calls and %d of %d health checks failed, and %d repeated, expected none: %q", pod.Name,
			found.Failed, found.Calls, found.HealthFailed, found.HealthChecks, found.Retries, found.Errors)
	}
}

// brokerState is the document that a broker serves at /profiles.
type brokerState struct {
	Digest   string    `json:"digest"`
	Revision int64     `json:"revision"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason"`
}

func brokerProfiles(t testing.TB, pod *corev1.Pod) (brokerState, error) {
	var found brokerState
	data, err := podGet(t.Context(), pod, brokerStatusPort, "profiles")
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(data, &found)
}

// hostAddress returns the address at which pods reach this machine, in the cluster's own network.
func hostAddress(t testing.TB) string {
	t.Helper()
	nodes, err := shared.clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, each := range nodes.Items[0].Status.Addresses {
		if each.Type == corev1.NodeInternalIP {
			// Connecting a UDP socket sends no packet.
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "udp", net.JoinHostPort(each.Address, "1"))
			must(t, err)
			defer func() { _ = conn.Close() }()
			return conn.LocalAddr().(*net.UDPAddr).IP.String()
		}
	}
	t.Fatal("the node has no internal address")
	return ""
}
