// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// storedProfiles is a cache of many objects.
type storedProfiles struct {
	client.Reader
	namespaces []corev1.Namespace
	own        []v1alpha1.CryptoProfile
	cluster    []v1alpha1.ClusterCryptoProfile
	sets       []corev1.ConfigMap
}

// Get reads the namespace or the set of one namespace.
func (m *storedProfiles) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *corev1.Namespace:
		for i := range m.namespaces {
			if m.namespaces[i].Name == key.Name {
				*o = m.namespaces[i]
				return nil
			}
		}
	case *corev1.ConfigMap:
		for i := range m.sets {
			if m.sets[i].Namespace == key.Namespace {
				*o = m.sets[i]
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List filters by namespace and by the index.
func (m *storedProfiles) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	in := (&client.ListOptions{}).ApplyOptions(options)
	matches := func(object client.Object) bool {
		return (in.Namespace == "" || object.GetNamespace() == in.Namespace) &&
			(in.FieldSelector == nil || in.FieldSelector.Matches(fields.Set{profileNameIndex: profileName(object)[0]}))
	}
	switch l := list.(type) {
	case *corev1.NamespaceList:
		l.Items = m.namespaces
	case *v1alpha1.CryptoProfileList:
		for i := range m.own {
			if matches(&m.own[i]) {
				l.Items = append(l.Items, m.own[i])
			}
		}
	case *v1alpha1.ClusterCryptoProfileList:
		for i := range m.cluster {
			if matches(&m.cluster[i]) {
				l.Items = append(l.Items, m.cluster[i])
			}
		}
	case *corev1.ConfigMapList:
		l.Items = m.sets
	}
	return nil
}

// callers are some names, of 50 bytes each.
func callers(count int) *v1alpha1.Callers {
	c := &v1alpha1.Callers{}
	for i := range count {
		c.Containers = append(c.Containers, fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 45)))
	}
	return c
}

// shopWith is a namespace that serves so many profiles, each with so many callers.
func shopWith(t testing.TB, profiles, callersOfEach int) *storedProfiles {
	t.Helper()
	m := &storedProfiles{namespaces: []corev1.Namespace{*namespace("shop", nil)}, sets: []corev1.ConfigMap{*profilesIn("shop")}}
	for i := range profiles {
		m.own = append(m.own, *profileNamed(fmt.Sprintf("own-%d", i), func(p *v1alpha1.CryptoProfile) { p.Spec.Callers = callers(callersOfEach) }))
	}
	result := render.Effective(m.own, nil, &m.namespaces[0])
	if len(result.Names) != profiles {
		t.Fatalf("%d of %d profiles have room", len(result.Names), profiles)
	}
	m.sets[0].Data[profile.FileName] = string(result.Data)
	return m
}

// The API server gives an answer five seconds. What it takes is milliseconds; work
// that grows with the square of the profiles takes more than the bound.
func TestAProfileAmongManyIsJudgedInAMomentAndByItself(t *testing.T) {
	for sentence, shop := range map[string]*storedProfiles{
		"2,000 profiles":              shopWith(t, 2000, 2),
		"97 profiles of 2 KB":         shopWith(t, 97, 32),
		"10 large ones":               shopWith(t, 10, 1600),
		"300 of them with long lists": shopWith(t, 300, 50),
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &effects{reader: shop}
			begin := time.Now()
			before := &shop.own[7]
			after := before.DeepCopy()
			after.Spec.API.HashData.HashAlg = "sha-256"
			if found, err := e.of(t.Context(), before, after); err != nil || len(found.withheld) != 1 || found.withheld[0].Weakenings[0].Field != "API.HashData.HashAlg" {
				t.Errorf("found %+v, %v, expected that a weaker digest is withheld", found, err)
			}
			for what, fresh := range map[string]client.Object{
				"a CryptoProfile":        profileNamed("fresh", func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" }),
				"a ClusterCryptoProfile": clusterProfileNamed("fresh"),
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
func manyNamespaces(tb testing.TB, count, ownProfiles int) *storedProfiles {
	tb.Helper()
	m := &storedProfiles{cluster: []v1alpha1.ClusterCryptoProfile{*clusterProfileNamed("policy")}}
	var own []v1alpha1.CryptoProfile
	for i := range ownProfiles {
		own = append(own, *profileNamed(fmt.Sprintf("own-%d", i), func(p *v1alpha1.CryptoProfile) {
			p.Spec.ProfileName, p.Spec.Callers = fmt.Sprintf("own-%d-of-shop", i), callers(40)
		}))
	}
	file := string(render.Effective(own, m.cluster, namespace("shop", nil)).Data)
	for i := range count {
		name := fmt.Sprintf("n%d", i)
		set := profilesIn(name)
		set.Data[profile.FileName] = strings.ReplaceAll(file, "-of-shop", "-of-"+name)
		m.namespaces, m.sets = append(m.namespaces, *namespace(name, nil)), append(m.sets, *set)
	}
	return m
}

// That each namespace has a large set of its own costs no more than to look for one
// name in it; to read all of them takes more than the bound.
func TestAClusterProfileIsJudgedInAMomentWhateverElseNamespacesServe(t *testing.T) {
	const count = 2000
	m := manyNamespaces(t, count, 20)
	before := &m.cluster[0]
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
