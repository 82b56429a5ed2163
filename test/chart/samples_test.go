// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

func TestABrokerAcceptsTheSampleProfiles(t *testing.T) {
	catalogue := []string{"Default", "FIPS-140-3-128bit", "FIPS-140-3-192bit", "FIPS-140-3-256bit", "KSA-ADVANCED-2020", "KSA-MODERATE-2020"}
	if found := profileNames(t, kustomize(t, "samples/catalogue")); !slices.Equal(found, catalogue) {
		t.Errorf("found the catalogue %q, expected %q", found, catalogue)
	}
	samples := []string{"client-certificates", "receipts"}
	if found := profileNames(t, kustomize(t, "samples")); !slices.Equal(found, samples) {
		t.Errorf("found the sample profiles %q, expected %q", found, samples)
	}
}

// profileNames lists the names of the profiles among objects, each of which has
// passed the broker's own compiler.
func profileNames(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	var names []string
	for _, object := range objects {
		var spec v1alpha1.ProfileSpec
		switch object.GetKind() {
		case "CryptoProfile":
			spec = find[v1alpha1.CryptoProfile](t, objects, "CryptoProfile", object.GetName()).Spec
		case "ClusterCryptoProfile":
			cluster := find[v1alpha1.ClusterCryptoProfile](t, objects, "ClusterCryptoProfile", object.GetName()).Spec
			if errs := render.ValidateSelector(cluster.NamespaceSelector); len(errs) > 0 {
				t.Errorf("%s: %v", identity(object), errs.ToAggregate())
			}
			spec = cluster.ProfileSpec
		default:
			continue
		}
		if errs := render.Validate(object.GetName(), &spec); len(errs) > 0 {
			t.Errorf("%s: %v", identity(object), errs.ToAggregate())
		}
		names = append(names, render.Name(object.GetName(), &spec))
	}
	slices.Sort(names)
	return names
}
