// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployments, Jobs and bare Pods have tests of their own.
func TestPodsOfStatefulSetsAndDaemonSetsHashThroughTheirOwnBrokers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	profile := createProfile(t, namespace, "sha-512")
	kinds := map[string]func(metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) client.Object{
		"stateful": func(meta metav1.ObjectMeta, selector *metav1.LabelSelector, template corev1.PodTemplateSpec) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), Selector: selector, Template: template}}
		},
		"daemon": func(meta metav1.ObjectMeta, selector *metav1.LabelSelector, template corev1.PodTemplateSpec) client.Object {
			return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
		},
	}
	for kind, workload := range kinds {
		pod := appPod(namespace, inject("true"), nil)
		labels := map[string]string{"app": kind}
		must(t, shared.client.Create(t.Context(), workload(
			metav1.ObjectMeta{Name: kind, Namespace: namespace}, &metav1.LabelSelector{MatchLabels: labels},
			corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec})))
	}
	for kind := range kinds {
		for _, pod := range readyPods(t, namespace, "app="+kind, 1) {
			expectNoFailure(t, &pod, awaitCalls(t, &pod, statsPort, nil, 20))
		}
	}
	awaitPropagated(t, profile, int32(len(kinds)))
}

func TestTheJobsOfACronJobCompleteWithTheirBrokers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	createProfile(t, namespace, "sha-256")
	pod := appPod(namespace, inject("true"), map[string]string{"CALLS": "20", "INTERVAL": "1ms"})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	must(t, shared.client.Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "report", Namespace: namespace},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				BackoffLimit: ptr.To[int32](0),
				Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec},
			}},
		},
	}))
	eventually(t, patience, "a job of the CronJob is complete", func() error {
		jobs, err := shared.clientset.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, job := range jobs.Items {
			if job.Status.Failed > 0 {
				t.Fatalf("the job failed: %+v", job.Status)
			}
			if job.Status.Succeeded == 1 && job.Status.CompletionTime != nil {
				return nil
			}
		}
		return fmt.Errorf("of %d jobs none is", len(jobs.Items))
	})
}
