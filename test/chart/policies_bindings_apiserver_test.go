// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bind binds a pod to a node, as a dry run.
func bind(ctx context.Context, c client.Client, pod *corev1.Pod, annotations map[string]string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node"},
	}
	return c.SubResource("binding").Create(ctx, pod.DeepCopy(), binding, &client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: []string{metav1.DryRunAll}}})
}

func TestABindingChangesNoAnnotationOfABroker(t *testing.T) {
	admin := clusterAdmin(t)
	pod := brokerPod(namespaceFor(t, nil), "app")
	create(t, admin, pod)
	for _, key := range []string{"cryptobroker.io/profiles-snapshot", "cryptobroker.io/injected", "cryptobroker.io/profiles-digest"} {
		err := bind(t.Context(), admin, pod, map[string]string{key: "other"})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a binding may not have annotations that begin with cryptobroker.io/") {
			t.Errorf("%s: found the error %v, expected a refusal by the policy", key, err)
		}
	}
	if err := bind(t.Context(), admin, pod, map[string]string{"example.com/rack": "7"}); err != nil {
		t.Errorf("a binding with another annotation is refused: %v", err)
	}
}
