// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// The profiles are for namespaces with a label that only this test gives, so that the others' namespaces have none of them.
func TestTheChartBringsTheCatalogueAndLeavesItBehind(t *testing.T) {
	chart := environment.Chart(shared.Repository)
	t.Cleanup(func() {
		ctx := timeoutContext(t, 4*time.Minute)
		if _, err := shared.helm.Install(ctx, chart, &shared.Images); err != nil {
			t.Errorf("installing the chart with its own values again: %v", err)
		}
		// Only now, or they would come back.
		if err := shared.client.DeleteAllOf(ctx, &v1alpha1.ClusterCryptoProfile{}, client.MatchingLabels{v1alpha1.CatalogueLabel: v1alpha1.CatalogueLabelValue}); err != nil {
			t.Errorf("removing the catalogue: %v", err)
		}
	})
	_, err := shared.helm.Install(t.Context(), chart, &shared.Images, "catalogue.enabled=true", "catalogue.namespaces=catalogue=wanted")
	must(t, err)
	namespace := newNamespace(t, map[string]string{"catalogue": "wanted"})
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	if found := awaitCalls(t, pod, statsPort, nil, 20); found.Algorithm != "sha3-512" {
		t.Errorf("found the algorithm %q, expected that of the catalogue's Default", found.Algorithm)
	}
	awaitCatalogue(t, func(p *v1alpha1.ClusterCryptoProfile) error {
		if p.Status.Namespaces != 1 || p.Status.Strength == nil || p.Status.FIPS == "" || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionAccepted) {
			return fmt.Errorf("its status is %+v", p.Status)
		}
		return nil
	})

	_, err = shared.helm.Install(t.Context(), chart, &shared.Images)
	must(t, err)
	awaitCatalogue(t, func(*v1alpha1.ClusterCryptoProfile) error { return nil })
	expectNoFailure(t, pod, mustStats(t, pod))
}

// awaitCatalogue waits until each profile of the catalogue is as it should be.
func awaitCatalogue(t testing.TB, check func(*v1alpha1.ClusterCryptoProfile) error) {
	t.Helper()
	eventually(t, time.Minute, "the catalogue is in the cluster", func() error {
		for _, name := range catalogue.Names() {
			var p v1alpha1.ClusterCryptoProfile
			if err := shared.client.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
				return err
			}
			if err := check(&p); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}
