// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	released "github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// asReleased returns a profile without fields that released brokers do not know or need: the digest of the key identifier, with
// which FIPS 140-3 approves certificates, and the name of the only library.
func asReleased(p profile.Profile) profile.Profile {
	p.Settings = nil
	if p.API.SignCertificate != nil {
		certificate := *p.API.SignCertificate
		certificate.SKIHashAlg = ""
		p.API.SignCertificate = &certificate
	}
	return p
}

func TestTheCatalogueIsThatOfBrokersOutsideKubernetes(t *testing.T) {
	outside, problems := profile.Parse(profile.FileName, released.Profiles)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]profile.Profile{}
	for _, p := range outside.Profiles {
		want[p.Name] = asReleased(p)
	}
	found := map[string]profile.Profile{}
	for _, name := range Names() {
		object, err := desired(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var p v1alpha1.ClusterCryptoProfile
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &p, true); err != nil {
			t.Fatal(err)
		}
		if p.Name != name || p.Kind != "ClusterCryptoProfile" {
			t.Errorf("the file of %s has %s %q", name, p.Kind, p.Name)
		}
		if errs := render.Validate(p.Name, &p.Spec.ProfileSpec); len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
		document, err := render.Document(p.Name, &p.Spec.ProfileSpec)
		if err != nil {
			t.Fatal(err)
		}
		found[document.Name] = asReleased(document)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the operator's catalogue (+) differs from the broker's (-):\n%s", diff)
	}
}

func TestNamesAreChosenFromTheCatalogue(t *testing.T) {
	tests := map[string]struct {
		list    string
		want    []string
		refusal string
	}{
		"none":                      {list: ""},
		"all":                       {list: "all", want: Names()},
		"two, one of them twice":    {list: "ksa-moderate-2020, default,default", want: []string{"default", "ksa-moderate-2020"}},
		"one that there is not":     {list: "default,fips", refusal: `no profile "fips", expected all, or names of default, fips-140-3-128bit`},
		"an empty name in the list": {list: "default,", refusal: `no profile ""`},
		"what is not a profile":     {list: "kustomization", refusal: `no profile "kustomization"`},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			found, err := Choose(test.list)
			if test.refusal == "" && (err != nil || !slices.Equal(found, test.want)) {
				t.Errorf("found %q and %v, expected %q", found, err, test.want)
			}
			if test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("found %v, expected %q", err, test.refusal)
			}
		})
	}
}

func TestTheSelectorIsThatOfEveryProfile(t *testing.T) {
	selector, err := metav1.ParseToLabelSelector("environment in (production,staging),!legacy")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		object, err := desired(name, selector)
		if err != nil {
			t.Fatal(err)
		}
		expressions, _, err := unstructured.NestedSlice(object.Object, "spec", "namespaceSelector", "matchExpressions")
		if err != nil || len(expressions) != 2 {
			t.Errorf("%s: found %v, %v", name, expressions, err)
		}
	}
}
