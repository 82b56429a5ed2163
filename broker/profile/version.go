// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strings"
)

// FormatVersion returns the oldest version of the field table that can express
// the profile. A broker that reads only older versions would overlook a field
// that restricts, so the profile must not be rendered for it. A field that comes
// to version 1 does not make another: brokers that read that version refuse a
// profile with a field that they do not know, and that profile alone.
func (p *Profile) FormatVersion() int {
	if p.Callers != nil || p.Audit != nil || p.API.ours() {
		return 1
	}
	return 0
}

func (a *API) ours() bool {
	if s := a.SignCertificate; s != nil {
		if s.SubjectAltNames != nil || s.CRLDistributionPoints != nil || s.AllowSHA1Requests || len(s.KeyIDs) > 0 || newSignAlgorithm(s.SignAlg) || s.KeyConstraints.ours() {
			return true
		}
	}
	if e := a.EncryptData; e != nil && (len(e.KeyIDs) > 0 || e.ShortTagLength != 0 || strings.EqualFold(e.NonceStrategy, "random")) {
		return true
	}
	if s := a.SignData; s != nil && (len(s.KeyIDs) > 0 || newSignAlgorithm(s.SignAlg) || s.KeyConstraints.ours()) {
		return true
	}
	return false
}

func (k KeyConstraints) ours() bool {
	_, subject := k.Subject["Ed25519"]
	_, issuer := k.Issuer["Ed25519"]
	return subject || issuer
}

func newSignAlgorithm(name string) bool {
	return name != "" && !slices.ContainsFunc([]string{"rsa", "ecdsa"}, func(released string) bool {
		return strings.EqualFold(released, name)
	})
}
