// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// Names of profiles.
const (
	clusterProfile   = "everywhere"
	namespaceProfile = "orders"
)

// The beginnings of the names of namespaces with and without pods.
const (
	namespacePrefix = "load-"
	morePrefix      = "more-"
)

// writers is how many objects this program creates at a time.
const writers = 32

// namespaceName returns the name of a namespace with pods.
func namespaceName(i int) string { return fmt.Sprintf(namespacePrefix+"%04d", i) }

// sizes returns the number of pods of each namespace: the first has a tenth of all pods, and the others share the rest.
func sizes(pods, namespaces int) []int {
	all := make([]int, namespaces)
	all[0] = pods / 10
	rest := pods - all[0]
	for i := range namespaces - 1 {
		all[i+1] = rest / (namespaces - 1)
		if i < rest%(namespaces-1) {
			all[i+1]++
		}
	}
	return all
}

// forEach calls for each number below count, many at a time, and reports progress.
func forEach(ctx context.Context, what string, count int, call func(ctx context.Context, i int) error) error {
	var done atomic.Int64
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		for {
			select {
			case <-finished:
				return
			case <-ticker.C:
				runner.Progress("%s: %d of %d", what, done.Load(), count)
			}
		}
	}()
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(writers)
	for i := range count {
		all.Go(func() error {
			defer done.Add(1)
			return call(ctx, i)
		})
	}
	return all.Wait()
}

// fillProfiles creates a ClusterCryptoProfile for every namespace, in addition to the profiles of the catalogue, and namespaces
// with one CryptoProfile each.
func (b *bench) fillProfiles(ctx context.Context) error {
	everywhere := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: clusterProfile}}
	everywhere.Spec.API.HashData = &v1alpha1.HashData{HashAlg: algorithms[0]}
	// The API server learns of the webhook's certificate a moment after the operator wrote it.
	err := runner.Eventually(ctx, readyLimit, "the webhook validates", func(ctx context.Context) error {
		return b.objects.Create(ctx, everywhere.DeepCopy())
	})
	if err != nil {
		return err
	}
	err = forEach(ctx, "creates namespaces", b.options.namespaces, func(ctx context.Context, i int) error {
		return b.objects.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespaceName(i), Labels: map[string]string{contract.InjectionLabel: contract.InjectionEnabled},
		}})
	})
	if err != nil {
		return err
	}
	// The webhook reads the namespace of a profile from a cache.
	if err := runner.Eventually(ctx, stepLimit, "each namespace has a set", b.haveSets(b.options.namespaces)); err != nil {
		return err
	}
	return forEach(ctx, "creates profiles", b.options.namespaces, func(ctx context.Context, i int) error {
		return b.objects.Create(ctx, profileIn(namespaceName(i), namespaceProfile))
	})
}

func profileIn(namespace, name string) *v1alpha1.CryptoProfile {
	p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: algorithms[0]}
	return p
}

// fillPods creates the pods, which the webhook injects brokers into, and lets them run.
func (b *bench) fillPods(ctx context.Context) error {
	var namespaces []string
	for i, size := range sizes(b.options.pods, b.options.namespaces) {
		for range size {
			namespaces = append(namespaces, namespaceName(i))
		}
	}
	err := runner.Eventually(ctx, readyLimit, "the webhook injects", func(ctx context.Context) error {
		probe, err := b.clients.CoreV1().Pods(namespaces[0]).Create(ctx, podOf(namespaces[0], 0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && injected.Broker(probe) == nil {
			err = errors.New("a pod has no broker")
		}
		return err
	})
	if err != nil {
		return err
	}
	return forEach(ctx, "creates pods", len(namespaces), func(ctx context.Context, i int) error {
		return b.runPod(ctx, namespaces[i], i)
	})
}

// runPod creates a pod and writes the status that its kubelet would write.
func (b *bench) runPod(ctx context.Context, namespace string, i int) error {
	pods := b.clients.CoreV1().Pods(namespace)
	pod, err := pods.Create(ctx, podOf(namespace, i), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if injected.Broker(pod) == nil {
		return fmt.Errorf("pod %s/%s was admitted without a broker", namespace, pod.Name)
	}
	b.results.snapshots.Add(int64(len(pod.Annotations[contract.ProfilesSnapshotAnnotation]) + len(pod.Annotations[contract.ProfilesSnapshotSignatureAnnotation])))
	b.nodes.run(namespace, pod.Name, addressOf(i))
	pod.Status = statusOf(pod, addressOf(i).String())
	pod, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: "kubelet"})
	if err != nil {
		return err
	}
	b.results.podBytes.Add(int64(pod.Size()))
	return nil
}

// podOf returns a pod like a pod of a Deployment, of a usual size.
func podOf(namespace string, i int) *corev1.Pod {
	environment := make([]corev1.EnvVar, 20)
	for i := range environment {
		environment[i] = corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: strings.Repeat("v", 30)}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("app-%05d", i),
			Labels: map[string]string{"app.kubernetes.io/name": "app", "pod-template-hash": "5d9c7f8b6c"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-5d9c7f8b6c", UID: ownerOf(namespace), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%03d", i%100),
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example/app:1.0.0", Env: environment,
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
				},
			}},
		},
	}
}

// ownerOf returns the UID of the ReplicaSet of a namespace's pods, which does not exist.
func ownerOf(namespace string) types.UID { return types.UID("replicaset-of-" + namespace) }

// statusOf returns the status of a pod that runs at an address.
func statusOf(pod *corev1.Pod, address string) corev1.PodStatus {
	now := metav1.Now()
	running := func(c corev1.Container) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "registry.example/image@sha256:" + strings.Repeat("0", 64), ContainerID: "containerd://" + string(uuid.NewUUID()),
			Ready: true, Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, HostIP: "192.0.2.1", HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}},
		StartTime: &now, QOSClass: pod.Status.QOSClass,
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, running(c))
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, running(c))
	}
	return status
}
