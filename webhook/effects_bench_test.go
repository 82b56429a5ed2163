// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// manyNamespaces is a cache of namespaces that serve the same cluster profile and
// one of their own.
type manyNamespaces struct {
	client.Reader
	namespaces []corev1.Namespace
	own        []v1alpha1.CryptoProfile
	cluster    []v1alpha1.ClusterCryptoProfile
	sets       []corev1.ConfigMap
}

func (m *manyNamespaces) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1.NamespaceList:
		l.Items = m.namespaces
	case *v1alpha1.CryptoProfileList:
		l.Items = m.own
	case *v1alpha1.ClusterCryptoProfileList:
		l.Items = m.cluster
	case *corev1.ConfigMapList:
		l.Items = m.sets
	}
	return nil
}

// The API server gives an answer five seconds: the guard has to be done with
// every namespace of a cluster well before.
func BenchmarkAWeakerClusterProfileInManyNamespaces(b *testing.B) {
	before := clusterProfileNamed("policy")
	after := before.DeepCopy()
	after.Spec.API.HashData.HashAlg = "sha-256"
	for _, count := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			many := &manyNamespaces{cluster: []v1alpha1.ClusterCryptoProfile{*before}}
			for i := range count {
				ns := namespace(fmt.Sprintf("n%d", i), nil)
				own := profileNamed("own", func(p *v1alpha1.CryptoProfile) { p.Namespace, p.Spec.ProfileName = ns.Name, fmt.Sprintf("own-%d", i) })
				set := profilesIn(ns.Name)
				set.Data[profile.FileName] = string(render.Effective([]v1alpha1.CryptoProfile{*own}, many.cluster, ns).Data)
				many.namespaces, many.own, many.sets = append(many.namespaces, *ns), append(many.own, *own), append(many.sets, *set)
			}
			e := &effects{reader: many}
			for b.Loop() {
				found, err := e.of(b.Context(), before, after)
				if err != nil || len(found.withheld) != 1 || len(found.withheld[0].namespaces) != count {
					b.Fatal(found, err)
				}
			}
		})
	}
}
