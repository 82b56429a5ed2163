// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
)

// Peer returns a peer. issuers are the issuers of its callers if it names none. The schema of the resource has checked types, lengths
// and lists.
func Peer(object *v1alpha1.KeyAccessPeer, issuers []caller.Issuer) (federation.Peer, field.ErrorList) {
	spec, at := &object.Spec, field.NewPath("spec")
	var problems field.ErrorList
	wrong := func(at *field.Path, text string) {
		problems = append(problems, field.Invalid(at, field.OmitValueType{}, text))
	}
	authorities := func(at *field.Path, text string) []byte {
		if text == "" {
			return nil
		}
		if _, err := tlsprovider.New(tlsprovider.Config{Authorities: []byte(text)}); err != nil {
			wrong(at, err.Error())
		}
		return []byte(text)
	}
	peer := federation.Peer{Peer: caller.Peer{URL: string(spec.URL), Authorities: authorities(at.Child("authorities"), spec.Authorities)}, Issuers: issuers}
	if err := federation.CheckURL(peer.URL); err != nil {
		wrong(at.Child("url"), err.Error())
	}
	for i, route := range spec.Routes {
		if err := federation.CheckURL(string(route)); err != nil {
			wrong(at.Child("routes").Index(i), err.Error())
		}
		if string(route) == peer.URL || slices.Contains(peer.Routes, string(route)) {
			wrong(at.Child("routes").Index(i), "found the peer itself or a route a second time, expected one way to each service")
		}
		peer.Routes = append(peer.Routes, string(route))
	}
	if spec.Timeout != "" {
		var err error
		if peer.Timeout, err = time.ParseDuration(spec.Timeout); err != nil {
			wrong(at.Child("timeout"), err.Error())
		}
	}
	if len(spec.Issuers) > 0 {
		peer.Issuers = nil
	}
	for i, from := range spec.Issuers {
		at := at.Child("issuers").Index(i)
		if u, err := url.Parse(from.URL); err != nil || u.Scheme != "https" || u.Hostname() == "" {
			wrong(at.Child("url"), "expected a URL such as https://issuer.example, without user, query and fragment")
		}
		issuer := caller.Issuer{
			URL: from.URL, ProofWithBearer: from.ProofWithBearer, ProofWithPath: from.ProofWithPath, RequireTokenType: from.RequireTokenType,
			Authorities: authorities(at.Child("authorities"), from.Authorities),
		}
		for _, audience := range from.Audiences {
			issuer.Audiences = append(issuer.Audiences, string(audience))
		}
		for _, algorithm := range from.Algorithms {
			issuer.Algorithms = append(issuer.Algorithms, string(algorithm))
		}
		peer.Issuers = append(peer.Issuers, issuer)
	}
	return peer, problems
}
