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
	found, err := w.made(ctx, client)
	if err != nil {
		return look
	}
	if found.refused != "" {
		return ": its pods are not created: " + oneLine(found.refused)
	}
	pods, err := client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(found.selector)})
	if err != nil {
		return look
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if ended(pod) || ready(pod) {
			continue
		}
		if old := pod.Labels[appsv1.StatefulSetRevisionLabel]; w.kind == kindStatefulSet && old != found.revision {
			return fmt.Sprintf(": pod %s is from before the restart and not ready, and a StatefulSet waits for it: kubectl delete pod %s -n %s has it made anew", pod.Name, pod.Name, w.namespace)
		}
		return fmt.Sprintf(": pod %s is not ready%s, see kubectl describe pod %s -n %s", pod.Name, containerWaits(pod), pod.Name, w.namespace)
	}
	return fmt.Sprintf(": no pod of it is there that is not ready; where some are missing, kubectl get events -n %s says why", w.namespace)
}

// made is what a workload says of the pods that it makes.
type made struct {
	// own is the workload itself.
	own      metav1.Object
	template *corev1.PodTemplateSpec
	// selector is by which labels its pods are known; nil where they are not.
	selector *metav1.LabelSelector
	// claims are the names of the claim templates of a StatefulSet.
	claims []string
	// revision is that of new pods of a StatefulSet.
	revision string
	// refused says why pods can't be created, if the workload tells.
	refused string
}

// made reads it.
func (w workload) made(ctx context.Context, client kubernetes.Interface) (made, error) {
	switch w.kind {
	case kindDeployment:
		d, err := client.AppsV1().Deployments(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return made{}, err
		}
		m := made{own: d, template: &d.Spec.Template, selector: d.Spec.Selector}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				m.refused = c.Message
			}
		}
		return m, nil
	case kindStatefulSet:
		s, err := client.AppsV1().StatefulSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return made{}, err
		}
		m := made{own: s, template: &s.Spec.Template, selector: s.Spec.Selector, revision: s.Status.UpdateRevision}
		for i := range s.Spec.VolumeClaimTemplates {
			m.claims = append(m.claims, s.Spec.VolumeClaimTemplates[i].Name)
		}
		return m, nil
	case kindDaemonSet:
		d, err := client.AppsV1().DaemonSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return made{}, err
		}
		return made{own: d, template: &d.Spec.Template, selector: d.Spec.Selector}, nil
	case kindJob:
		j, err := client.BatchV1().Jobs(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return made{}, err
		}
		return made{own: j, template: &j.Spec.Template, selector: j.Spec.Selector}, nil
	default:
		c, err := client.BatchV1().CronJobs(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return made{}, err
		}
		return made{own: c, template: &c.Spec.JobTemplate.Spec.Template}, nil
	}
}

// pod is a new pod of the workload, less what its controller adds.
func (m made) pod() *podTemplate {
	namespace := m.own.GetNamespace()
	pod := &corev1.Pod{ObjectMeta: *m.template.ObjectMeta.DeepCopy(), Spec: m.template.Spec}
	pod.Namespace = namespace
	return &podTemplate{pod: pod, namespace: namespace, claims: m.claims}
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
