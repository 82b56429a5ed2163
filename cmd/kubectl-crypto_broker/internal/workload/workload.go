// SPDX-License-Identifier: Apache-2.0

// Package workload reads the objects that create pods, such as Deployments: their templates,
// the progress of a rollout, why it does not end, and which object owns a pod.
package workload

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

// Kinds of workloads. Jobs and CronJobs can't be restarted.
const (
	Deployment  = "deployment"
	StatefulSet = "statefulset"
	DaemonSet   = "daemonset"
	kindJob     = "job"
	kindCronJob = "cronjob"
)

// Kinds are the names and short names of the kinds that can be restarted.
var Kinds = map[string]string{
	"deployment": Deployment, "deployments": Deployment, "deploy": Deployment,
	"statefulset": StatefulSet, "statefulsets": StatefulSet, "sts": StatefulSet,
	"daemonset": DaemonSet, "daemonsets": DaemonSet, "ds": DaemonSet,
}

// batches are the names and short names of the other kinds.
var batches = map[string]string{
	"job": kindJob, "jobs": kindJob, "cronjob": kindCronJob, "cronjobs": kindCronJob, "cj": kindCronJob,
}

// Workload is an object that creates pods.
type Workload struct{ Kind, Namespace, Name string }

// String returns kind/name for kubectl.
func (w Workload) String() string { return w.Kind + "/" + w.Name }

// Parse reads kind/name of a workload that can be restarted.
func Parse(argument, namespace string) (Workload, error) {
	if w, ok := workloadOf(argument, namespace, Kinds); ok {
		return w, nil
	}
	return Workload{}, program.Usagef("found %q, expected deployment/NAME, statefulset/NAME or daemonset/NAME", argument)
}

// ParseAny reads kind/name.
func ParseAny(argument, namespace string) (Workload, error) {
	for _, names := range []map[string]string{Kinds, batches} {
		if w, ok := workloadOf(argument, namespace, names); ok {
			return w, nil
		}
	}
	return Workload{}, program.Usagef("found %q, expected the name of a pod, or deployment/NAME, statefulset/NAME, daemonset/NAME, job/NAME or cronjob/NAME", argument)
}

func workloadOf(argument, namespace string, kinds map[string]string) (Workload, bool) {
	kind, name, both := strings.Cut(argument, "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".") // the group, as in deployment.apps
	known, ok := kinds[kind]
	return Workload{known, namespace, name}, both && ok && name != "" && !strings.Contains(name, "/")
}

// Workload returns the owner if it can be restarted. Otherwise it returns false.
func (o Owner) Workload() (Workload, bool) {
	kind, ok := Kinds[strings.ToLower(o.kind)]
	return Workload{kind, o.namespace, o.name}, ok && o.apiVersion == "apps/v1"
}

// AnyWorkload returns the owner if its template can be read. Otherwise it returns false.
func (o Owner) AnyWorkload() (Workload, bool) {
	if w, can := o.Workload(); can {
		return w, true
	}
	kind, ok := batches[strings.ToLower(o.kind)]
	return Workload{kind, o.namespace, o.name}, ok && strings.HasPrefix(o.apiVersion, "batch/")
}

// progress is the progress of a rollout.
type progress struct {
	Done bool
	Text string
	// Barred says why a restart would create no new pods. It is empty if a restart would create
	// pods.
	Barred string
	// Exceeded reports whether a Deployment exceeded its progress deadline. A restart
	// begins a new rollout.
	Exceeded bool
}

// Read returns the progress of the workload, and why it can't be restarted, if so.
func (w Workload) Read(ctx context.Context, client kubernetes.Interface) (progress, error) {
	switch w.Kind {
	case Deployment:
		d, err := client.AppsV1().Deployments(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return progress{}, err
		}
		return deploymentProgress(d), nil
	case StatefulSet:
		s, err := client.AppsV1().StatefulSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return progress{}, err
		}
		return statefulSetProgress(s), nil
	default:
		d, err := client.AppsV1().DaemonSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
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
	p := progress{Text: fmt.Sprintf("%d of %d new pods are available, %d old ones are left", min(s.AvailableReplicas, s.UpdatedReplicas), want, s.Replicas-s.UpdatedReplicas)}
	if d.Spec.Paused {
		p.Barred = "its rollout is paused: kubectl rollout resume deployment/" + d.Name
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" && s.ObservedGeneration >= d.Generation {
			p.Exceeded = true
		}
	}
	p.Done = s.ObservedGeneration >= d.Generation && s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
	return p
}

func statefulSetProgress(s *appsv1.StatefulSet) progress {
	want := int32(1)
	if s.Spec.Replicas != nil {
		want = *s.Spec.Replicas
	}
	p := progress{Text: fmt.Sprintf("%d of %d pods are new, %d are ready", s.Status.UpdatedReplicas, want, s.Status.ReadyReplicas)}
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		p.Barred = onDelete
	}
	renewed := want
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		renewed = max(0, want-*r.Partition)
	}
	p.Done = s.Status.ObservedGeneration >= s.Generation && s.Status.UpdatedReplicas >= renewed && s.Status.ReadyReplicas >= want
	return p
}

func daemonSetProgress(d *appsv1.DaemonSet) progress {
	s := d.Status
	p := progress{Text: fmt.Sprintf("%d of %d pods are new, %d are available", s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberAvailable)}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		p.Barred = onDelete
	}
	p.Done = s.ObservedGeneration >= d.Generation && s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled
	return p
}

// Patch changes the pods' template as `kubectl rollout restart` does.
func (w Workload) Patch(ctx context.Context, client kubernetes.Interface, patch []byte, dryRun ...string) (err error) {
	options := metav1.PatchOptions{FieldManager: "kubectl-crypto_broker", DryRun: dryRun}
	switch w.Kind {
	case Deployment:
		_, err = client.AppsV1().Deployments(w.Namespace).Patch(ctx, w.Name, types.StrategicMergePatchType, patch, options)
	case StatefulSet:
		_, err = client.AppsV1().StatefulSets(w.Namespace).Patch(ctx, w.Name, types.StrategicMergePatchType, patch, options)
	default:
		_, err = client.AppsV1().DaemonSets(w.Namespace).Patch(ctx, w.Name, types.StrategicMergePatchType, patch, options)
	}
	return err
}
