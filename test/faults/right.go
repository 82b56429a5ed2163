// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// appStats asks the application in a pod for its counts, without the API server.
func appStats(ctx context.Context, pod *corev1.Pod) (*stats.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	address := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(workload.StatsPort)) + "/stats"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	found := &stats.Stats{}
	return found, json.Unmarshal(data, found)
}

// prepare finds the pods of the applications, and returns an error unless all is right.
func (t *trial) prepare(ctx context.Context) error {
	list, err := t.Clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=app"})
	if err != nil {
		return err
	}
	t.pods = list.Items
	if len(t.pods) != applications {
		return fmt.Errorf("found %d pods of the application, expected %d", len(t.pods), applications)
	}
	return t.checkServed(ctx)
}

// checkServed returns an error unless the node is ready, both replicas of the operator work, the
// webhook admits pods, every pod is ready and the status of the profile says that all
// brokers serve it.
func (t *trial) checkServed(ctx context.Context) error {
	node, err := t.Clientset.CoreV1().Nodes().Get(ctx, clusterName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, each := range node.Status.Conditions {
		if each.Type == corev1.NodeReady && each.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s", each.Message)
		}
	}
	if err := t.OperatorRuns(ctx, workload.Replicas); err != nil {
		return err
	}
	operator, err := t.OperatorPods(ctx)
	if err != nil {
		return err
	}
	list, err := t.Clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) != applications {
		return fmt.Errorf("found %d pods in the namespace, expected %d", len(list.Items), applications)
	}
	for _, pod := range append(operator, list.Items...) {
		if !workload.Ready(&pod) {
			return fmt.Errorf("the pod %s is not ready: %s", pod.Name, workload.DescribeContainers(&pod))
		}
	}
	return t.propagated(ctx)
}

// propagated returns an error unless the status of the profile says that every pod serves it.
func (t *trial) propagated(ctx context.Context) error {
	profile := &v1alpha1.CryptoProfile{}
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: profileName}, profile); err != nil {
		return err
	}
	status := profile.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != profile.Generation ||
		status.Pods != applications || status.UpdatedPods != applications {
		said := "it has none"
		if ready != nil {
			said = fmt.Sprintf("%s, %s: %s", ready.Status, ready.Reason, ready.Message)
		}
		return fmt.Errorf("the profile counts %d of %d pods updated, and its condition Ready is: %s", status.UpdatedPods, status.Pods, said)
	}
	return nil
}

// newPod creates a pod with a broker, waits until its application sees the new algorithm, and
// deletes it.
func (t *trial) newPod(ctx context.Context) (err error) {
	pod := t.Pod(namespace, workload.Inject("true"), nil)
	if err := t.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create a pod after the fault: %w", err)
	}
	defer func() {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if deleted := t.Client.Delete(deleting, pod); !apierrors.IsNotFound(deleted) {
			err = errors.Join(err, deleted)
		}
	}()
	return runner.Eventually(ctx, 2*time.Minute, "a new pod serves the newest profile", func(ctx context.Context) error {
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if !workload.Ready(pod) {
			return fmt.Errorf("it is %s: %s", pod.Status.Phase, workload.DescribeContainers(pod))
		}
		found, err := appStats(ctx, pod)
		if err == nil && (found.Algorithm != t.algorithm || len(found.Observed) != 1) {
			err = fmt.Errorf("it saw %+v, expected %s alone", found.Observed, t.algorithm)
		}
		return err
	})
}

// diagnose prints what somebody needs who wants to know what is wrong.
func (t *trial) diagnose(ctx context.Context) {
	for _, arguments := range [][]string{
		{"get", "pods", "--all-namespaces", "-o", "wide"},
		{"-n", namespace, "get", "cryptoprofiles", "-o", "yaml"},
		{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", environment.Namespace, "logs", "--selector=app.kubernetes.io/name=" + environment.Release, "--tail=80", "--prefix"},
		{"-n", namespace, "logs", "--selector=app=app", "--all-containers", "--tail=25", "--prefix"},
	} {
		output, err := t.KubectlRun(ctx, nil, arguments...)
		runner.Progress("kubectl %q: %v\n%s", arguments, err, output)
	}
}
