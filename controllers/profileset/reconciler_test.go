// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

func TestChangesOfProfilesGoBeforeAllNamespacesThatGetOtherKeysOrAuthorities(t *testing.T) {
	const count = 100
	sets := fake.NewClientBuilder()
	for i := range count {
		sets.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%02d", i), Name: v1alpha1.ProfilesConfigMap}})
	}
	q := queue.New(t.Name())
	defer q.ShutDown()
	r := &reconciler{client: sets.Build(), queue: q}
	if _, err := r.Reconcile(t.Context(), queue.Request(everyNamespace)); err != nil {
		t.Fatal(err)
	}
	const waiting, further = "n-50", "further"
	q.Add(queue.Request(waiting))
	q.Add(queue.Request(further))
	var order []string
	for range count + 1 {
		request, ended := q.Get()
		if ended {
			t.Fatalf("the queue has %d requests, expected %d", len(order), count+1)
		}
		order = append(order, request.Name)
		q.Done(request)
	}
	if first := order[:2]; !slices.Contains(first, waiting) || !slices.Contains(first, further) {
		t.Errorf("the first requests are %q, expected the ones whose profiles changed", first)
	}
	slices.Sort(order)
	if distinct := slices.Compact(order); len(distinct) != count+1 {
		t.Errorf("%d namespaces were requested, expected %d", len(distinct), count+1)
	}
}
