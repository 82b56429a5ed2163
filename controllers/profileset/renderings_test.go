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

func TestLargeSetsAreNotRememberedBesideEachOther(t *testing.T) {
	r := newRenderings()
	set := func(uid string, profiles int) render.Result {
		all := make([]v1alpha1.CryptoProfile, profiles)
		for i := range all {
			all[i].ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint("p-", i), UID: types.UID(fmt.Sprint(uid, i)), Generation: 1}
			all[i].Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
		}
		return r.effective(all, nil, &corev1.Namespace{})
	}
	for _, test := range []struct {
		sentence               string
		uid                    string
		profiles               int
		wantSets, wantProfiles int
	}{
		{"a small set", "a", 10, 1, 10},
		{"a set that has room beside it", "b", keptProfiles - 10, 2, keptProfiles},
		{"a small set that takes the place of the first", "c", 5, 2, keptProfiles - 5},
		{"a set that is larger than all that is kept, alone", "d", keptProfiles + 1, 1, keptProfiles + 1},
		{"a small set instead of it", "e", 1, 1, 1},
	} {
		if found := set(test.uid, test.profiles); len(found.Parts) != test.profiles {
			t.Fatalf("%s: found %d profiles", test.sentence, len(found.Parts))
		}
		if len(r.kept) != test.wantSets || len(r.order) != test.wantSets || r.profiles != test.wantProfiles {
			t.Errorf("%s: %d sets with %d profiles are kept, expected %d with %d", test.sentence, len(r.kept), r.profiles, test.wantSets, test.wantProfiles)
		}
	}
}
