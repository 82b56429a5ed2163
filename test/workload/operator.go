// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// Replicas is the number of replicas of the operator that the chart installs by default.
const Replicas = 2

// OperatorPods returns the pods of the operator.
func (c *Cluster) OperatorPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := c.Clientset.CoreV1().Pods(environment.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=" + environment.Release})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the operator: %w", err)
	}
	return pods.Items, nil
}

// ScaleOperator sets the replicas of the operator, and waits for up to 90 seconds until OperatorRuns confirms this number.
func (c *Cluster) ScaleOperator(ctx context.Context, replicas int32) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: environment.Release, Namespace: environment.Namespace},
		Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if _, err := c.Clientset.AppsV1().Deployments(environment.Namespace).UpdateScale(ctx, environment.Release, scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for {
		err := c.OperatorRuns(ctx, int(replicas))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %d replicas of the operator answer: %w", replicas, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// OperatorRuns returns an error unless there are exactly that many pods of the operator, all of them are ready and endpoints of the
// webhook's Service, and the webhook answers. The API server keeps connections to pods that are being deleted, so the state of the
// pods alone is not enough.
func (c *Cluster) OperatorRuns(ctx context.Context, replicas int) error {
	ready, all, err := c.webhookEndpoints(ctx)
	pods, more := c.OperatorPods(ctx)
	if err = errors.Join(err, more); err != nil {
		return err
	}
	if ready != replicas || all != replicas || len(pods) != replicas {
		return fmt.Errorf("found %d pods of the operator, and %d of %d endpoints ready, expected %d", len(pods), ready, all, replicas)
	}
	if replicas == 0 {
		return nil
	}
	return c.AdmitPod(ctx, c.Pod(metav1.NamespaceDefault, Inject("true"), nil))
}

// AdmitPod asks the API server to admit a pod, without creating it.
func (c *Cluster) AdmitPod(ctx context.Context, pod *corev1.Pod) error {
	return c.Client.Create(ctx, pod, client.DryRunAll)
}

// webhookEndpoints counts the endpoints of the webhook's service.
func (c *Cluster) webhookEndpoints(ctx context.Context) (ready, all int, err error) {
	slices, err := c.Clientset.DiscoveryV1().EndpointSlices(environment.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + environment.Release + "-webhook"})
	if err != nil {
		return 0, 0, err
	}
	for _, slice := range slices.Items {
		for _, each := range slice.Endpoints {
			all++
			if each.Conditions.Ready != nil && *each.Conditions.Ready {
				ready++
			}
		}
	}
	return ready, all, nil
}
