// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
)

func TestAPatchForAnObjectThatIsGoneIsNoFailureIfAnotherOneHasItsName(t *testing.T) {
	in := namespace(t, nil)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "app"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/app"}}},
	}
	create(t, pod)

	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"uid":"of-the-pod-before","annotations":{"a":"b"}}}`))
	if err := apiServer.Status().Patch(t.Context(), pod.DeepCopy(), patch); !statuspatch.IsGone(err) {
		t.Errorf("found %v for another pod of the name, expected that the first one is gone", err)
	}
	patch = client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"finalizers":["no name"]}}`))
	if err := apiServer.Status().Patch(t.Context(), pod.DeepCopy(), patch); err == nil || statuspatch.IsGone(err) {
		t.Errorf("found %v for an invalid patch, expected a failure", err)
	}
}
