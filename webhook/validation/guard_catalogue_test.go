// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// ofCatalogue returns the catalogue's profile "default" with this digest algorithm.
func ofCatalogue(algorithm string, changes ...func(*v1alpha1.ClusterCryptoProfile)) *v1alpha1.ClusterCryptoProfile {
	p := fixture.ClusterProfileNamed("default", changes...)
	p.Spec.ProfileName, p.Spec.API.HashData.HashAlg = "Default", algorithm
	if p.Labels == nil {
		p.Labels = map[string]string{v1alpha1.CatalogueLabel: v1alpha1.CatalogueLabelValue}
	}
	return p
}

func TestWhatANamespaceServesKeepsTheCatalogueFromThatNamespaceAlone(t *testing.T) {
	own := fixture.ProfileNamed("theirs", func(p *v1alpha1.CryptoProfile) { p.Namespace, p.Spec.ProfileName = "bank", "Default" })
	serving := func(ns string, own []v1alpha1.CryptoProfile, cluster ...v1alpha1.ClusterCryptoProfile) client.Object {
		return fixture.SetIn(ns, string(render.Effective(own, cluster, fixture.Namespace(ns, nil)).Data))
	}
	bank := serving("bank", []v1alpha1.CryptoProfile{*own}) // serves sha3-512
	in := `the profile "Default" of namespace "bank"`
	weaker := func(algorithm, bits string) string {
		return `spec.api.hashData.hashAlg: "` + algorithm + `" has a strength of ` + bits + ` bits, "sha3-512" had 256 bits.`
	}
	unlabelled := func(p *v1alpha1.ClusterCryptoProfile) { p.Labels = map[string]string{} }
	called := func(p *v1alpha1.ClusterCryptoProfile) { p.Name = "other" }
	for sentence, test := range map[string]struct {
		shop          client.Object
		before, after *v1alpha1.ClusterCryptoProfile
		warns, denies string
	}{
		"a profile that comes": {
			after: ofCatalogue("sha-256"),
			warns: in + " is withheld, because it is weaker than what is served: " + weaker("sha-256", "128"),
		},
		"a profile that becomes stronger, and not strong enough": {
			shop:   serving("shop", nil, *ofCatalogue("sha-256")),
			before: ofCatalogue("sha-256"), after: ofCatalogue("sha-384"),
			warns: in + " is withheld, because it is weaker than what is served: " + weaker("sha-384", "192"),
		},
		"but none that becomes weaker than itself": {
			shop:   serving("shop", nil, *ofCatalogue("sha-384")),
			before: ofCatalogue("sha-384"), after: ofCatalogue("sha-256"),
			denies: `this makes the profile "Default" of namespace "shop" weaker than what is served`,
		},
		"nor one without the label":               {after: ofCatalogue("sha-256", unlabelled), denies: "this makes " + in + " weaker"},
		"nor one that the catalogue doesn't have": {after: ofCatalogue("sha-256", called), denies: "this makes " + in + " weaker"},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := []client.Object{fixture.Namespace("bank", nil), fixture.Namespace("shop", nil), bank.DeepCopyObject().(client.Object), own.DeepCopy()}
			if test.shop != nil {
				objects = append(objects, test.shop)
			}
			if test.before != nil {
				objects = append(objects, test.before)
			}
			reader := apiServerWith(t, objects...)
			g := newGuard(reader, Options{OperatorNamespace: "crypto-broker-system", Review: func(context.Context, *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
				t.Error("nobody has to be asked who may")
				return &authorizationv1.SubjectAccessReview{}, nil
			}})
			next := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
			request := change(t, nil, test.after)
			if test.before != nil {
				request = change(t, test.before, test.after)
			}
			response := guardedBy(g, admission.NewDecoder(fixture.Scheme(t)), &v1alpha1.ClusterCryptoProfile{}, next).Handle(t.Context(), request)
			if test.denies != "" {
				if response.Allowed || response.Result.Code != http.StatusForbidden || !strings.Contains(response.Result.Message, test.denies) {
					t.Errorf("answered %v, expected a refusal that says %q", response.Result, test.denies)
				}
				return
			}
			if !response.Allowed || len(response.Warnings) != 1 || response.Warnings[0] != test.warns {
				t.Errorf("answered %v with the warnings %q, expected %q", response.Result, response.Warnings, test.warns)
			}
		})
	}
}
