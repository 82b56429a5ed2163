// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// withQuota makes a namespace in which pods must have requests and limits. It writes the status of the quota, because no controller
// does so here.
func withQuota(t *testing.T, names ...corev1.ResourceName) string {
	t.Helper()
	namespace := newNamespace(t, nil, nil)
	if err := admin.Create(t.Context(), fixture.ProfilesIn(namespace)); err != nil {
		t.Fatal(err)
	}
	hard, used := corev1.ResourceList{}, corev1.ResourceList{}
	for _, name := range names {
		hard[name], used[name] = resource.MustParse("100Gi"), resource.MustParse("0")
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: namespace}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if err := admin.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	if err := admin.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota counts", func() error {
		_, err := tryPod(t, namespace, fixture.PodWith(fixture.Asking("false")))
		if err == nil || !strings.Contains(err.Error(), "must specify") {
			return errors.Join(errors.New("a pod that says nothing is not refused for that"), err)
		}
		return nil
	})
	return namespace
}

// withSmallResources are the resources of an app in such a namespace.
func withSmallResources(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources = fixture.Sized("100m", "64Mi", "1", "128Mi")
}

func TestAQuotaForRequestsAndMemoryDoesNotRefuseTheBroker(t *testing.T) {
	startOperator(t)
	namespace := withQuota(t, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory)
	if _, err := tryPod(t, namespace, fixture.PodWith(withSmallResources)); err != nil {
		t.Error(err)
	}
}

func TestAQuotaForCPULimitsIsMetByAnAnnotation(t *testing.T) {
	startOperator(t)
	namespace := withQuota(t, corev1.ResourceLimitsCPU)
	_, err := tryPod(t, namespace, fixture.PodWith(withSmallResources))
	if err == nil || !strings.Contains(err.Error(), "must specify limits.cpu for: crypto-broker") {
		t.Errorf("without the annotation: %v, expected a sentence that names the broker", err)
	}
	if _, err := tryPod(t, namespace, fixture.PodWith(withSmallResources, fixture.Annotated("cpu-limit", "500m"))); err != nil {
		t.Errorf("with the annotation: %v", err)
	}
}
