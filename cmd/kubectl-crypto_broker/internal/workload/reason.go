// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
)

// Reason returns why a rollout does not end, as far as the cluster shows it: its pods are
// refused, or one of them does not become ready. The text begins with a colon.
func (w Workload) Reason(ctx context.Context, client kubernetes.Interface) string {
	look := fmt.Sprintf(": kubectl describe %s -n %s says more", w, w.Namespace)
	found, err := w.Made(ctx, client)
	if err != nil {
		return look
	}
	if found.Refused != "" {
		return ": its pods are not created: " + apierror.OneLine(found.Refused)
	}
	pods, err := client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(found.Selector)})
	if err != nil {
		return look
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if Ended(pod) || ready(pod) {
			continue
		}
		if old := pod.Labels[appsv1.StatefulSetRevisionLabel]; w.Kind == StatefulSet && old != found.revision {
			return fmt.Sprintf(": pod %s is older than the restart and not ready, and a StatefulSet waits for it: kubectl delete pod %s -n %s replaces it", pod.Name, pod.Name, w.Namespace)
		}
		return fmt.Sprintf(": pod %s is not ready%s, see kubectl describe pod %s -n %s", pod.Name, containerWaits(pod), pod.Name, w.Namespace)
	}
	return fmt.Sprintf(": all its pods are ready; if some are missing, kubectl get events -n %s says why", w.Namespace)
}

// Made describes the pods that a workload creates.
type Made struct {
	// Own is the workload itself.
	Own      metav1.Object
	Template *corev1.PodTemplateSpec
	// Selector selects its pods by their labels. It is nil if it is not known.
	Selector *metav1.LabelSelector
	// claims are the names of the claim templates of a StatefulSet.
	claims []string
	// revision is the revision of new pods of a StatefulSet.
	revision string
	// Refused says why pods cannot be created, if the workload's status has the reason.
	Refused string
}

// Made reads the workload and returns what it says about its pods.
func (w Workload) Made(ctx context.Context, client kubernetes.Interface) (Made, error) {
	switch w.Kind {
	case Deployment:
		d, err := client.AppsV1().Deployments(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return Made{}, err
		}
		m := Made{Own: d, Template: &d.Spec.Template, Selector: d.Spec.Selector}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				m.Refused = c.Message
			}
		}
		return m, nil
	case StatefulSet:
		s, err := client.AppsV1().StatefulSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return Made{}, err
		}
		m := Made{Own: s, Template: &s.Spec.Template, Selector: s.Spec.Selector, revision: s.Status.UpdateRevision}
		for i := range s.Spec.VolumeClaimTemplates {
			m.claims = append(m.claims, s.Spec.VolumeClaimTemplates[i].Name)
		}
		return m, nil
	case DaemonSet:
		d, err := client.AppsV1().DaemonSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return Made{}, err
		}
		return Made{Own: d, Template: &d.Spec.Template, Selector: d.Spec.Selector}, nil
	case kindJob:
		j, err := client.BatchV1().Jobs(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return Made{}, err
		}
		return Made{Own: j, Template: &j.Spec.Template, Selector: j.Spec.Selector}, nil
	default:
		c, err := client.BatchV1().CronJobs(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return Made{}, err
		}
		return Made{Own: c, Template: &c.Spec.JobTemplate.Spec.Template}, nil
	}
}

// Pod returns a new pod of the workload, without the additions of its controller.
func (m Made) Pod() *manifest.PodTemplate {
	namespace := m.Own.GetNamespace()
	pod := &corev1.Pod{ObjectMeta: *m.Template.ObjectMeta.DeepCopy(), Spec: m.Template.Spec}
	pod.Namespace = namespace
	return &manifest.PodTemplate{Pod: pod, Namespace: namespace, Claims: m.claims}
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// containerWaits returns which container of a pod waits, and why.
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

// Ended reports whether a pod has ended or is being deleted.
func Ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
