// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// sized returns a profile that takes a little more than this many bytes.
func sized(algorithm string, size int) v1alpha1.ProfileSpec {
	return v1alpha1.ProfileSpec{
		API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: algorithm}},
		KMS: &v1alpha1.KMS{Client: "test", Config: map[string]apiextensionsv1.JSON{"text": {Raw: []byte(`"` + strings.Repeat("x", size) + `"`)}}},
	}
}

func TestOldProfilesThatStayKeepNoneOfTheClustersFromTheSet(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1"}}
	namespaces := state.NewStore()
	g := newGuard(namespaces, 0, func(context.Context, sources) (downgrade.State, error) {
		return downgrade.State{}, nil
	})
	own := func(name, algorithm string, size int) v1alpha1.CryptoProfile {
		return v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: sized(algorithm, size)}
	}
	policy := v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}
	policy.Spec.ProfileSpec = sized("sha-384", 10)
	judge := func(own []v1alpha1.CryptoProfile, cluster ...v1alpha1.ClusterCryptoProfile) guarded {
		set, err := g.judge(t.Context(), sources{namespace: ns, namespaced: own, cluster: cluster, rendered: render.Effective(own, cluster, ns)})
		if err != nil || set.Refusal != "" {
			t.Fatal(set.Refusal, err)
		}
		namespaces.Update(ns, func(known *state.Namespace) { known.Served = &set.state })
		return set
	}
	judge([]v1alpha1.CryptoProfile{own("first", "sha-512", render.MaxSetSize*2/3)})

	// The first profile becomes weaker and small. It leaves room for the second one, but is withheld.
	set := judge([]v1alpha1.CryptoProfile{own("first", "sha-256", 10), own("second", "sha-512", render.MaxSetSize*2/3)}, policy)
	if len(set.Data) > render.MaxSetSize || !slices.Contains(set.Names, "policy") {
		t.Errorf("the set of %d bytes has %q, expected the cluster's profile in it", len(set.Data), set.Names)
	}
	if len(set.Names) != 2 {
		t.Errorf("the set has %q, expected one of the two others in it", set.Names)
	}
	left := "first"
	if slices.Contains(set.Names, left) {
		left = "second"
	}
	if verdict := set.Namespaced[left]; verdict.Accepted || verdict.Reason != v1alpha1.ReasonTooLarge {
		t.Errorf("%s: %+v", left, verdict)
	}
	// The first profile is left out because of its size, but it is still compared with its old content.
	set = judge([]v1alpha1.CryptoProfile{own("first", "sha-256", 10)}, policy)
	if slices.Contains(set.Names, "first") && set.Namespaced["first"].Accepted {
		t.Errorf("the weaker profile is served: %q", set.Names)
	}
}
