// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The API server waits five seconds for an answer. The work takes milliseconds. Work that grows with the square of the number of
// profiles would exceed the bound.
func TestAProfileAmongManyIsJudgedInAMomentAndByItself(t *testing.T) {
	for sentence, shop := range map[string]*fixture.StoredProfiles{
		"2,000 profiles":              fixture.ShopWith(t, 2000, 2),
		"97 profiles of 2 KB":         fixture.ShopWith(t, 97, 32),
		"10 large ones":               fixture.ShopWith(t, 10, 1600),
		"300 of them with long lists": fixture.ShopWith(t, 300, 50),
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &effects{reader: shop}
			begin := time.Now()
			before := &shop.Own[7]
			after := before.DeepCopy()
			after.Spec.API.HashData.HashAlg = "sha-256"
			if found, err := e.of(t.Context(), before, after); err != nil || len(found.withheld) != 1 || found.withheld[0].Weakenings[0].Field != "API.HashData.HashAlg" {
				t.Errorf("found %+v, %v, expected that a weaker digest is withheld", found, err)
			}
			for what, fresh := range map[string]client.Object{
				"a CryptoProfile":        fixture.ProfileNamed("fresh", func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" }),
				"a ClusterCryptoProfile": fixture.ClusterProfileNamed("fresh"),
			} {
				if found, err := e.of(t.Context(), nil, fresh); err != nil || len(found.withheld) > 0 {
					t.Errorf("%s of a name that was never served: %+v, %v", what, found, err)
				}
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("three answers took %s", took)
			}
		})
	}
}

// manyNamespaces serve the cluster profile "policy" and profiles of their own.
func manyNamespaces(tb testing.TB, count, ownProfiles int) *fixture.StoredProfiles {
	tb.Helper()
	m := &fixture.StoredProfiles{Cluster: []v1alpha1.ClusterCryptoProfile{*fixture.ClusterProfileNamed("policy")}}
	var own []v1alpha1.CryptoProfile
	for i := range ownProfiles {
		own = append(own, *fixture.ProfileNamed(fmt.Sprintf("own-%d", i), func(p *v1alpha1.CryptoProfile) {
			p.Spec.ProfileName, p.Spec.Callers = fmt.Sprintf("own-%d-of-shop", i), fixture.Callers(40)
		}))
	}
	file := string(render.Effective(own, m.Cluster, fixture.Namespace("shop", nil)).Data)
	for i := range count {
		name := fmt.Sprintf("n%d", i)
		set := fixture.ProfilesIn(name)
		set.Data[profile.FileName] = strings.ReplaceAll(file, "-of-shop", "-of-"+name)
		m.Namespaces, m.Sets = append(m.Namespaces, *fixture.Namespace(name, nil)), append(m.Sets, *set)
	}
	return m
}

// A large set in each namespace costs only a search for one name. Reading all sets would exceed the bound.
func TestAClusterProfileIsJudgedInAMomentWhateverElseNamespacesServe(t *testing.T) {
	const count = 2000
	m := manyNamespaces(t, count, 20)
	before := &m.Cluster[0]
	after := before.DeepCopy()
	after.Spec.API.HashData.HashAlg = "sha-256"
	begin := time.Now()
	found, err := (&effects{reader: m}).of(t.Context(), before, after)
	if err != nil || len(found.withheld) != 1 || len(found.withheld[0].namespaces) != count {
		t.Fatal(len(found.withheld), err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("comparing %d namespaces took %s", count, took)
	}
}

// If each namespace serves a different profile of the name, each has to be compared separately. A refusal names as many changes as
// one annotation has room for.
func TestARefusalComparesAsManyNamespacesAsOneAnnotationAllows(t *testing.T) {
	e := &effects{reader: namespacesWithOwnProfiles(t, downgrade.MaxDigests+50)}
	weaker := fixture.ClusterProfileNamed("default")
	found, err := e.of(t.Context(), nil, weaker)
	if err != nil || len(found.withheld) != downgrade.MaxDigests || found.uncompared != 50 {
		t.Fatalf("found %d changes and %d namespaces that were not compared, %v", len(found.withheld), found.uncompared, err)
	}
	source := downgrade.Source{Kind: downgrade.KindCluster, Name: "default"}
	text := found.refusal(source, true)
	if !strings.Contains(text, "And 95 more changes make profiles weaker. 50 namespaces were not compared: there may be more once these changes are allowed.") {
		t.Errorf("the refusal is %.2000s", text)
	}
	_, digests, _ := strings.Cut(text, v1alpha1.AllowWeakerAnnotation+": ")
	weaker.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digests}
	if found, err = e.of(t.Context(), nil, weaker); err != nil || len(found.withheld) != 50 || len(found.allowed) != downgrade.MaxDigests || found.uncompared != 0 {
		t.Errorf("with the annotation found %d withheld, %d allowed, %d not compared, %v", len(found.withheld), len(found.allowed), found.uncompared, err)
	}
}
