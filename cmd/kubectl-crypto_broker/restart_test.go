// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// stuckDeployment returns a Deployment whose last rollout has exceeded its progress deadline. Its controller has seen the latest
// generation.
func stuckDeployment(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
		}},
	}
	for _, change := range change {
		change(d)
	}
	return d
}

func podOf(app string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app + "-0", Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: "node"},
	}
	for _, change := range change {
		change(pod)
	}
	return pod
}

// newCluster returns a fake cluster with these objects. It admits all pods without changes.
func newCluster(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	return client
}

// restartOf restarts deployments or statefulsets in a cluster with these objects. rollOut has the actions of the controllers after
// a restart.
func restartOf(ctx context.Context, client *fake.Clientset, timeout time.Duration, names ...string) (said, notes string, err error) {
	var out, errs bytes.Buffer
	r := restarter{client: client, out: &out, errs: &errs, timeout: timeout}
	all, err := parseWorkloads(names, "shop")
	if err != nil {
		return "", "", err
	}
	if err := r.check(ctx, all); err != nil {
		return out.String(), errs.String(), err
	}
	err = r.restart(ctx, all)
	return out.String(), errs.String(), err
}

// controllers makes the fake cluster act like the controllers after a restart. A dry run changes nothing.
func controllers(client *fake.Clientset, rollOut func(*appsv1.Deployment)) {
	client.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if len(patch.PatchOptions.DryRun) > 0 {
			return true, &appsv1.Deployment{}, nil
		}
		object, err := client.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("deployments"), patch.Namespace, patch.Name)
		if err != nil {
			return true, nil, err
		}
		d := object.(*appsv1.Deployment).DeepCopy()
		d.Generation++
		rollOut(d)
		return true, d, client.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("deployments"), d, patch.Namespace)
	})
}

// comesUp is a rollout that ends well.
func comesUp(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

func TestADeploymentThatExceededItsDeadlineIsRestarted(t *testing.T) {
	client := newCluster(stuckDeployment("orders"))
	controllers(client, comesUp)
	said, notes, err := restartOf(t.Context(), client, time.Minute, "deploy/orders")
	if err != nil || !strings.Contains(said, "1/1 deployment/orders in namespace shop: done") ||
		!strings.Contains(notes, "note: deployment/orders in namespace shop exceeded its progress deadline: the restart begins a new rollout") {
		t.Errorf("found %v\n%s%s", err, said, notes)
	}
}

func TestARolloutThatDoesNotComeUpSaysWhy(t *testing.T) {
	exceeds := func(d *appsv1.Deployment) { d.Status.ObservedGeneration = d.Generation }
	waitsFor := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		}
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reports"},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "reports"}}},
		Status:     appsv1.StatefulSetStatus{UpdateRevision: "new"},
	}
	tests := map[string]struct {
		objects  []runtime.Object
		rollOut  func(*appsv1.Deployment)
		workload string
		says     string
	}{
		"a deadline that is exceeded again": {[]runtime.Object{stuckDeployment("orders"), podOf("orders", waitsFor("ImagePullBackOff"))}, exceeds, "deploy/orders",
			"deployment/orders in namespace shop: it exceeded its progress deadline (0 of 1 new pods are available, 0 old ones are left): pod orders-0 is not ready: container app waits with ImagePullBackOff, see kubectl describe pod orders-0 -n shop"},
		"a time that is over": {[]runtime.Object{stuckDeployment("orders")}, func(*appsv1.Deployment) {}, "deploy/orders",
			"it did not come up within 1s (0 of 1 new pods are available, 0 old ones are left): all its pods are ready; if some are missing, kubectl get events -n shop says why"},
		"pods that admission refuses": {[]runtime.Object{stuckDeployment("orders")}, func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "admission webhook\ndenied the request"}}
		}, "deploy/orders", "it did not come up within 1s (0 of 1 new pods are available, 0 old ones are left): its pods are not created: admission webhook denied the request"},
		"a pod that a StatefulSet waits for": {[]runtime.Object{set, podOf("reports", func(p *corev1.Pod) { p.Labels[appsv1.StatefulSetRevisionLabel] = "old" })}, nil, "sts/reports",
			"pod reports-0 is older than the restart and not ready, and a StatefulSet waits for it: kubectl delete pod reports-0 -n shop replaces it"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			client := newCluster(test.objects...)
			if test.rollOut != nil {
				controllers(client, test.rollOut)
			}
			_, _, err := restartOf(t.Context(), client, time.Second, test.workload)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("found %v", err)
			}
		})
	}
}

func TestAnInterruptLeavesTheRestAlone(t *testing.T) {
	client := newCluster(stuckDeployment("a"), stuckDeployment("b"), stuckDeployment("c"))
	ctx, interrupt := context.WithCancel(t.Context())
	controllers(client, func(*appsv1.Deployment) { interrupt() })
	_, _, err := restartOf(ctx, client, time.Minute, "deploy/a", "deploy/b", "deploy/c")
	const want = "which continues; the other 2 were not restarted"
	if err == nil || !strings.Contains(err.Error(), "deployment/a in namespace shop: interrupted while it was being restarted") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("found %v", err)
	}
}

func TestAnAPIServerThatIsAwayDoesNotEndARestart(t *testing.T) {
	client := newCluster(stuckDeployment("orders"))
	away := 0
	controllers(client, func(d *appsv1.Deployment) { comesUp(d); away = 2 })
	client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		if away == 0 {
			return false, nil, nil
		}
		away--
		return true, nil, errors.New("connection refused")
	})
	said, _, err := restartOf(t.Context(), client, time.Minute, "deploy/orders")
	if err != nil || !strings.Contains(said, "    connection refused\n") || !strings.Contains(said, ": done after") {
		t.Errorf("found %v\n%s", err, said)
	}
}

func TestARightThatIsMissingIsToldBeforeAnythingIsRestarted(t *testing.T) {
	client := newCluster(stuckDeployment("a"), stuckDeployment("b"))
	controllers(client, comesUp)
	client.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.PatchActionImpl).Name != "b" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(appsv1.Resource("deployments"), "b", errors.New(`User "jane" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`))
	})
	said, _, err := restartOf(t.Context(), client, time.Minute, "deploy/a", "deploy/b")
	const want = "nothing was restarted: deployment/b in namespace shop cannot be restarted: the right to patch deployments in namespace shop is missing (user jane)"
	if err == nil || apierror.Plain(err) != want || said != "" {
		t.Errorf("found %v\n%s", err, said)
	}
}

func TestWhatMayNotBeTriedIsToldAndRestarted(t *testing.T) {
	client := newCluster(stuckDeployment("orders"))
	controllers(client, comesUp)
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New(`User "jane" cannot create resource "pods" in API group "" in the namespace "shop"`))
	})
	said, notes, err := restartOf(t.Context(), client, time.Minute, "deploy/orders")
	const want = "note: the dry run that would show whether new pods of deployment/orders in namespace shop are admitted failed: the right to create pods in namespace shop is missing (user jane)\n"
	if err != nil || !strings.Contains(said, "1/1 deployment/orders in namespace shop: done") || !strings.Contains(notes, want) {
		t.Errorf("found %v\n%s%s", err, said, notes)
	}
}

func TestNothingIsRestartedWhereANewPodCannotBeTriedForAnotherReason(t *testing.T) {
	client := newCluster(stuckDeployment("orders"))
	controllers(client, comesUp)
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	said, _, err := restartOf(t.Context(), client, time.Minute, "deploy/orders")
	const want = "nothing was restarted: deployment/orders in namespace shop cannot be restarted: the dry run with a new pod of it failed: connection refused"
	if err == nil || err.Error() != want || said != "" {
		t.Errorf("found %v\n%s", err, said)
	}
}
