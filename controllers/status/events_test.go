// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

func TestAProblemOfASetIsReportedOnceAlsoIfTheConfigMapCouldNotBeReadAtFirst(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
	namespaces := state.NewStore()
	namespaces.Update(shop, func(*state.Namespace) {})
	failure := errors.New("the cache is not there yet")
	recorder := events.NewFakeRecorder(10)
	r := &reporter{
		recorder:   recorder,
		namespaces: namespaces,
		client: interceptor.NewClient(fake.NewClientBuilder().WithObjects(
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.ProfilesConfigMap}},
		).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if failure != nil {
					return failure
				}
				return c.Get(ctx, key, object, options...)
			},
		}),
	}
	summary := distribute.Summary{Digest: "sha256:1", Pods: 2, Updated: 1, Refusing: 1}
	if err := r.reportSet(t.Context(), "shop", summary); !errors.Is(err, failure) {
		t.Errorf("found the error %v, expected %v", err, failure)
	}
	failure = nil
	for range 2 {
		if err := r.reportSet(t.Context(), "shop", summary); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("found %d events, expected one", len(recorder.Events))
	}
	if event := <-recorder.Events; !strings.Contains(event, v1alpha1.ReasonRefusedByBroker) {
		t.Errorf("found the event %q, expected %s", event, v1alpha1.ReasonRefusedByBroker)
	}
}
