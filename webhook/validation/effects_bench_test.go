// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The API server waits five seconds for an answer. The guard has to finish all namespaces of a cluster well before that.
func BenchmarkAWeakerClusterProfileInManyNamespaces(b *testing.B) {
	for _, count := range []int{100, 1000, 5000, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			m := manyNamespaces(b, count, 3)
			before := &m.Cluster[0]
			after := before.DeepCopy()
			after.Spec.API.HashData.HashAlg = "sha-256"
			e := &effects{reader: m}
			for b.Loop() {
				found, err := e.of(b.Context(), before, after)
				if err != nil || len(found.withheld) != 1 || len(found.withheld[0].namespaces) != count {
					b.Fatal(found, err)
				}
			}
		})
	}
}

// namespacesWithOwnProfiles returns namespaces that each serve a different profile of the name "default".
func namespacesWithOwnProfiles(tb testing.TB, count int) *fixture.StoredProfiles {
	tb.Helper()
	m := &fixture.StoredProfiles{}
	for i := range count {
		name := fmt.Sprintf("n%d", i)
		own := *fixture.ProfileNamed("default", func(p *v1alpha1.CryptoProfile) {
			p.Namespace, p.Spec.Callers = name, &v1alpha1.Callers{Containers: []string{name, "app"}}
		})
		set := fixture.ProfilesIn(name)
		set.Data[profile.FileName] = string(render.Effective([]v1alpha1.CryptoProfile{own}, nil, fixture.Namespace(name, nil)).Data)
		m.Namespaces, m.Own, m.Sets = append(m.Namespaces, *fixture.Namespace(name, nil)), append(m.Own, own), append(m.Sets, *set)
	}
	return m
}

func BenchmarkAWeakerClusterProfileInThePlaceOfAnotherInEachNamespace(b *testing.B) {
	e := &effects{reader: namespacesWithOwnProfiles(b, 5000)}
	for b.Loop() {
		found, err := e.of(b.Context(), nil, fixture.ClusterProfileNamed("default"))
		if err != nil || len(found.withheld) == 0 {
			b.Fatal(len(found.withheld), err)
		}
	}
}

// The worst case: each namespace has to be compared, and none is like another.
func BenchmarkAStrongClusterProfileInThePlaceOfAnotherInEachNamespace(b *testing.B) {
	e := &effects{reader: namespacesWithOwnProfiles(b, 5000)}
	for b.Loop() {
		found, err := e.of(b.Context(), nil, fixture.ClusterProfileNamed("default", func(p *v1alpha1.ClusterCryptoProfile) {
			p.Spec.Callers = &v1alpha1.Callers{Containers: []string{"app"}}
		}))
		if err != nil || len(found.withheld) > 0 {
			b.Fatal(len(found.withheld), err)
		}
	}
}
