// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

func TestARememberedRenderingIsTheSameAsANewOne(t *testing.T) {
	r := newRenderings()
	own := func(uid types.UID, generation int64, algorithm string) v1alpha1.CryptoProfile {
		p := v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "own", UID: uid, Generation: generation}}
		p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: algorithm}
		return p
	}
	shared := v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "shared", Generation: 1}}
	shared.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-384"}
	shared.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	leaving := shared
	now := metav1.Now()
	leaving.DeletionTimestamp = &now

	selected := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	other := &corev1.Namespace{}
	inputs := []struct {
		namespaced []v1alpha1.CryptoProfile
		cluster    []v1alpha1.ClusterCryptoProfile
		ns         *corev1.Namespace
	}{
		{nil, nil, other},
		{[]v1alpha1.CryptoProfile{own("1", 1, "sha-256")}, nil, other},
		{[]v1alpha1.CryptoProfile{own("1", 2, "sha-384")}, nil, other},
		{[]v1alpha1.CryptoProfile{own("2", 1, "sha-512")}, nil, other},
		{nil, []v1alpha1.ClusterCryptoProfile{shared}, selected},
		{nil, []v1alpha1.ClusterCryptoProfile{shared}, other},
		{nil, []v1alpha1.ClusterCryptoProfile{leaving}, selected},
	}
	for range 2 {
		for i, in := range inputs {
			if found, want := r.effective(in.namespaced, in.cluster, in.ns), render.Effective(in.namespaced, in.cluster, in.ns); found.Digest != want.Digest {
				t.Errorf("input %d: found\n%s\nexpected\n%s", i, found.Data, want.Data)
			}
		}
	}
	for i := range 3 * keptRenderings {
		r.effective([]v1alpha1.CryptoProfile{own(types.UID(fmt.Sprint(i)), 9, "sha-256")}, nil, other)
	}
	if len(r.kept) != keptRenderings || len(r.order) != keptRenderings {
		t.Errorf("%d renderings are kept, expected %d", len(r.kept), keptRenderings)
	}
}
