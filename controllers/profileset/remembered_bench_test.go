// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	manifests "github.com/crypto-broker/crypto-broker-operator/config/samples/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// fromCatalogue returns the profiles of the catalogue.
func fromCatalogue(b *testing.B) []v1alpha1.ClusterCryptoProfile {
	b.Helper()
	var all []v1alpha1.ClusterCryptoProfile
	for _, name := range catalogue.Names() {
		manifest, err := manifests.Manifests.ReadFile(name + ".yaml")
		if err != nil {
			b.Fatal(err)
		}
		var p v1alpha1.ClusterCryptoProfile
		if err := yaml.Unmarshal(manifest, &p); err != nil {
			b.Fatal(err)
		}
		p.UID, p.Generation = types.UID(name), 1
		all = append(all, p)
	}
	return all
}

// ofNamespace returns as many profiles of a namespace as a large set has.
func ofNamespace(b *testing.B) []v1alpha1.CryptoProfile {
	b.Helper()
	from := fromCatalogue(b)
	all := make([]v1alpha1.CryptoProfile, 500)
	for i := range all {
		all[i].ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint("profile-", i), UID: types.UID(fmt.Sprint(i)), Generation: 1}
		all[i].Spec = *from[i%len(from)].Spec.ProfileSpec.DeepCopy()
		all[i].Spec.ProfileName = ""
	}
	return all
}

// The cost of rendering a set that was rendered before. This happens for each namespace that a ClusterCryptoProfile selects, and
// after each write of the operator itself.
func BenchmarkRendering(b *testing.B) {
	for sentence, from := range map[string]struct {
		own     []v1alpha1.CryptoProfile
		cluster []v1alpha1.ClusterCryptoProfile
	}{
		"the catalogue":               {nil, fromCatalogue(b)},
		"500 profiles of a namespace": {ofNamespace(b), nil},
	} {
		namespace := &corev1.Namespace{}
		b.Run(sentence+"/remembered", func(b *testing.B) {
			r := newRenderings()
			for b.Loop() {
				r.effective(from.own, from.cluster, namespace)
			}
		})
		b.Run(sentence+"/rendered each time", func(b *testing.B) {
			for b.Loop() {
				render.Effective(from.own, from.cluster, namespace)
			}
		})
	}
}

// The cost of finding out which profiles of the present set are missing in the next one.
func BenchmarkMissing(b *testing.B) {
	own := ofNamespace(b)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	before, after := render.Effective(own, nil, namespace), render.Effective(own[1:], nil, namespace)
	from := sources{namespace: namespace, found: &corev1.ConfigMap{Data: map[string]string{profile.FileName: string(before.Data)}}}
	r := &reconciler{namespaces: state.NewStore()}
	missing := func(b *testing.B) {
		if found := r.missing(from, guarded{Result: after}); len(found) != 1 {
			b.Fatalf("found %q, expected one profile", found)
		}
	}
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			missing(b)
		}
	})
	b.Run("read each time", func(b *testing.B) {
		for b.Loop() {
			r.namespaces.Forget("shop")
			missing(b)
		}
	})
}
