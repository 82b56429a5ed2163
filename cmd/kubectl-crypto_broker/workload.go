// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// Kinds of workloads. Those of batches can't be restarted.
const (
	kindDeployment  = "deployment"
	kindStatefulSet = "statefulset"
	kindDaemonSet   = "daemonset"
	kindJob         = "job"
	kindCronJob     = "cronjob"
)

// kinds are the names that people have for those that can be restarted.
var kinds = map[string]string{
	"deployment": kindDeployment, "deployments": kindDeployment, "deploy": kindDeployment,
	"statefulset": kindStatefulSet, "statefulsets": kindStatefulSet, "sts": kindStatefulSet,
	"daemonset": kindDaemonSet, "daemonsets": kindDaemonSet, "ds": kindDaemonSet,
}

// batches are the names that people have for the others.
var batches = map[string]string{
	"job": kindJob, "jobs": kindJob, "cronjob": kindCronJob, "cronjobs": kindCronJob, "cj": kindCronJob,
}

// workload makes pods.
type workload struct{ kind, namespace, name string }

// String is kind/name as kubectl takes it.
func (w workload) String() string { return w.kind + "/" + w.name }

// parseWorkload reads kind/name of a workload that can be restarted.
func parseWorkload(argument, namespace string) (workload, error) {
	if w, ok := workloadOf(argument, namespace, kinds); ok {
		return w, nil
	}
	return workload{}, program.Usagef("found %q, expected deployment/NAME, statefulset/NAME or daemonset/NAME", argument)
}

// parseAnyWorkload reads kind/name.
func parseAnyWorkload(argument, namespace string) (workload, error) {
	for _, names := range []map[string]string{kinds, batches} {
		if w, ok := workloadOf(argument, namespace, names); ok {
			return w, nil
		}
	}
	return workload{}, program.Usagef("found %q, expected the name of a pod, or deployment/NAME, statefulset/NAME, daemonset/NAME, job/NAME or cronjob/NAME", argument)
}

func workloadOf(argument, namespace string, kinds map[string]string) (workload, bool) {
	kind, name, both := strings.Cut(argument, "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".") // the group, as in deployment.apps
	known, ok := kinds[kind]
	return workload{known, namespace, name}, both && ok && name != "" && !strings.Contains(name, "/")
}

// workload is the owner as one that can be restarted; false if it can't.
func (o owner) workload() (workload, bool) {
	kind, ok := kinds[strings.ToLower(o.kind)]
	return workload{kind, o.namespace, o.name}, ok && o.apiVersion == "apps/v1"
}

// anyWorkload is the owner as one whose template is known; false if it is another.
func (o owner) anyWorkload() (workload, bool) {
	if w, can := o.workload(); can {
		return w, true
	}
	kind, ok := batches[strings.ToLower(o.kind)]
	return workload{kind, o.namespace, o.name}, ok && strings.HasPrefix(o.apiVersion, "batch/")
}

// progress is how far a rollout is.
type progress struct {
	done bool
	text string
	// barred says why a restart makes no new pods, empty if it does.
	barred string
	// exceeded is whether a Deployment was given up by its progress deadline. A
	// restart begins anew.
	exceeded bool
}

// read returns how far the workload is, and why it can't be restarted, if so.
func (w workload) read(ctx context.Context, client kubernetes.Interface) (progress, error) {
	switch w.kind {
	case kindDeployment:
		d, err := client.AppsV1().Deployments(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return progress{}, err
		}
		return deploymentProgress(d), nil
	case kindStatefulSet:
		s, err := client.AppsV1().StatefulSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return progress{}, err
		}
		return statefulSetProgress(s), nil
	default:
		d, err := client.AppsV1().DaemonSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return progress{}, err
		}
		return daemonSetProgress(d), nil
	}
}

const onDelete = "its update strategy is OnDelete: its pods are renewed when you delete them"

func deploymentProgress(d *appsv1.Deployment) progress {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	p := progress{text: fmt.Sprintf("%d of %d new pods are available, %d old ones are left", min(s.AvailableReplicas, s.UpdatedReplicas), want, s.Replicas-s.UpdatedReplicas)}
	if d.Spec.Paused {
		p.barred = "its rollout is paused: kubectl rollout resume deployment/" + d.Name
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" && s.ObservedGeneration >= d.Generation {
			p.exceeded = true
		}
	}
	p.done = s.ObservedGeneration >= d.Generation && s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
	return p
}

func statefulSetProgress(s *appsv1.StatefulSet) progress {
	want := int32(1)
	if s.Spec.Replicas != nil {
		want = *s.Spec.Replicas
	}
	p := progress{text: fmt.Sprintf("%d of %d pods are new, %d are ready", s.Status.UpdatedReplicas, want, s.Status.ReadyReplicas)}
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		p.barred = onDelete
	}
	renewed := want
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		renewed = max(0, want-*r.Partition)
	}
	p.done = s.Status.ObservedGeneration >= s.Generation && s.Status.UpdatedReplicas >= renewed && s.Status.ReadyReplicas >= want
	return p
}

func daemonSetProgress(d *appsv1.DaemonSet) progress {
	s := d.Status
	p := progress{text: fmt.Sprintf("%d of %d pods are new, %d are available", s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberAvailable)}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		p.barred = onDelete
	}
	p.done = s.ObservedGeneration >= d.Generation && s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled
	return p
}

// patch changes the pods' template as `kubectl rollout restart` does.
func (w workload) patch(ctx context.Context, client kubernetes.Interface, patch []byte, dryRun ...string) (err error) {
	options := metav1.PatchOptions{FieldManager: "kubectl-crypto_broker", DryRun: dryRun}
	switch w.kind {
	case kindDeployment:
		_, err = client.AppsV1().Deployments(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, patch, options)
	case kindStatefulSet:
		_, err = client.AppsV1().StatefulSets(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, patch, options)
	default:
		_, err = client.AppsV1().DaemonSets(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, patch, options)
	}
	return err
}
