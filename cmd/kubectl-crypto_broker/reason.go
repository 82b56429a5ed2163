// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// reason says why a rollout does not come to its end, as far as the cluster
// tells: its pods are refused, or one of them does not get ready. It begins with
// a colon.
func (w workload) reason(ctx context.Context, client kubernetes.Interface) string {
	look := fmt.Sprintf(": kubectl describe %s -n %s says more", w, w.namespace)
	selector, revision, refused, err := w.pods(ctx, client)
	if err != nil {
		return look
	}
	if refused != "" {
		return ": its pods are not created: " + oneLine(refused)
	}
	pods, err := client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return look
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if ended(pod) || ready(pod) {
			continue
		}
		if old := pod.Labels[appsv1.StatefulSetRevisionLabel]; w.kind == kindStatefulSet && old != revision {
			return fmt.Sprintf(": pod %s is from before the restart and not ready, and a StatefulSet waits for it: kubectl delete pod %s -n %s has it made anew", pod.Name, pod.Name, w.namespace)
		}
		return fmt.Sprintf(": pod %s is not ready%s, see kubectl describe pod %s -n %s", pod.Name, containerWaits(pod), pod.Name, w.namespace)
	}
	return fmt.Sprintf(": no pod of it is there that is not ready; where some are missing, kubectl get events -n %s says why", w.namespace)
}

// pods says by which labels the pods of a workload are known, which revision new
// ones are of, and why none can be created, if the workload tells.
func (w workload) pods(ctx context.Context, client kubernetes.Interface) (selector *metav1.LabelSelector, revision, refused string, err error) {
	switch w.kind {
	case kindDeployment:
		d, err := client.AppsV1().Deployments(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return nil, "", "", err
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				refused = c.Message
			}
		}
		return d.Spec.Selector, "", refused, nil
	case kindStatefulSet:
		s, err := client.AppsV1().StatefulSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return nil, "", "", err
		}
		return s.Spec.Selector, s.Status.UpdateRevision, "", nil
	default:
		d, err := client.AppsV1().DaemonSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return nil, "", "", err
		}
		return d.Spec.Selector, "", "", nil
	}
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// containerWaits says which container of a pod waits, and with what.
func containerWaits(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			return fmt.Sprintf(": container %s waits with %s", status.Name, w.Reason)
		}
	}
	if pod.Spec.NodeName == "" {
		return ": it has no node"
	}
	return ""
}
