// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestTheCatalogueComesToAllNamespacesButThoseItWouldWeaken(t *testing.T) {
	startWholeOperator(t, 0)
	tier := map[string]string{"tier": rand.String(10)}
	strong, other := newNamespace(t, tier, nil), newNamespace(t, tier, nil)
	own := profileOf(strong, "default", "sha3-512")
	own.Spec.ProfileName = "Default"
	if err := admin.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	expectServed(t, strong, "sha3-512")
	p := fixture.ClusterProfileNamed("default", func(p *v1alpha1.ClusterCryptoProfile) {
		p.CreationTimestamp = metav1.Time{}
		p.Labels = map[string]string{v1alpha1.CatalogueLabel: v1alpha1.CatalogueLabelValue}
		p.Spec.ProfileName, p.Spec.API.HashData.HashAlg = "Default", "sha-256"
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: tier}
	})
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatalf("the whole cluster goes without for one namespace: %v", err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	expectServed(t, other, "sha-256")
	eventually(t, "the condition says where it is withheld", func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		withheld, accepted := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDowngradeWithheld), meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAccepted)
		if withheld == nil || withheld.Status != metav1.ConditionTrue || !strings.Contains(withheld.Message, weaker) ||
			!strings.Contains(accepted.Message, `missing from the sets of 1 of its 2 namespaces. Namespace "`+strong+`"`) {
			return fmt.Errorf("found %+v", p.Status.Conditions)
		}
		return nil
	})
	eventually(t, "an event says so", func() error {
		var events eventsv1.EventList
		if err := admin.List(t.Context(), &events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.UID == p.UID && e.Reason == v1alpha1.ReasonDowngradeWithheld && strings.Contains(e.Note, strong) {
				return nil
			}
		}
		return fmt.Errorf("found %d other events", len(events.Items))
	})
	expectServed(t, strong, "sha3-512")
}
