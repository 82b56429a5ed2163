// SPDX-License-Identifier: Apache-2.0

// Package render turns CryptoProfiles and ClusterCryptoProfiles into what
// brokers read.
//
// Document translates one resource into a profile of a file. Validate says
// what is wrong with it, with the field paths of the resource: it asks the
// broker's own compiler, so that what passes is exactly what a broker accepts.
// Effective merges all that counts in a namespace into the bytes of its
// profile file.
//
// Everything here is pure: the same input gives the same bytes, in whatever
// order the resources come.
package render

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Name returns the name that applications use for the profile of an object.
func Name(objectName string, spec *v1alpha1.ProfileSpec) string {
	if spec.ProfileName != "" {
		return spec.ProfileName
	}
	return objectName
}

// Document translates a resource into a profile of a file. objectName is the
// resource's metadata.name. It fails only where a free-form value of kms is no
// JSON, which no API server stores.
func Document(objectName string, spec *v1alpha1.ProfileSpec) (profile.Profile, error) {
	p := profile.Profile{
		Name: Name(objectName, spec),
		API: profile.API{
			HashData:        hashData(spec.API.HashData),
			SignCertificate: signCertificate(spec.API.SignCertificate),
			EncryptData:     encryptData(spec.API.EncryptData),
			SignData:        signData(spec.API.SignData),
		},
	}
	if s := spec.Settings; s != nil {
		p.Settings = &profile.Settings{CryptoLibrary: s.CryptoLibrary}
	}
	if k := spec.KMS; k != nil {
		config, err := values(k.Config)
		if err != nil {
			return profile.Profile{}, fmt.Errorf("spec.kms.config: %w", err)
		}
		cache, err := values(k.Cache)
		if err != nil {
			return profile.Profile{}, fmt.Errorf("spec.kms.cache: %w", err)
		}
		p.KMS = &profile.KMS{Client: k.Client, Config: config, Cache: cache}
	}
	if c := spec.Callers; c != nil {
		p.Callers = &profile.Callers{Containers: c.Containers, UIDs: c.UIDs, GIDs: c.GIDs}
	}
	if a := spec.Audit; a != nil {
		p.Audit = &profile.Audit{Level: a.Level, Required: a.Required}
	}
	if d := spec.Deprecation; d != nil {
		p.Deprecation = &profile.Deprecation{
			ReplacedBy:      d.ReplacedBy,
			DeprecatedSince: d.DeprecatedSince,
			RemoveAfter:     d.RemoveAfter,
			Reason:          d.Reason,
		}
	}
	return p, nil
}

func hashData(h *v1alpha1.HashData) *profile.HashData {
	if h == nil {
		return nil
	}
	return &profile.HashData{HashAlg: h.HashAlg}
}

func signCertificate(s *v1alpha1.SignCertificate) *profile.SignCertificate {
	if s == nil {
		return nil
	}
	c := &profile.SignCertificate{
		SignAlg:    s.SignAlg,
		HashAlg:    s.HashAlg,
		SKIHashAlg: s.SKIHashAlg,
		Validity: profile.Validity{
			ValidNotBeforeOffset: s.Validity.ValidNotBeforeOffset,
			ValidNotAfterOffset:  s.Validity.ValidNotAfterOffset,
		},
		KeyConstraints: profile.KeyConstraints{
			Subject: keySizes(&s.KeyConstraints.Subject),
			Issuer:  keySizes(&s.KeyConstraints.Issuer),
		},
		KeyUsage:          s.KeyUsage,
		ExtendedKeyUsage:  s.ExtendedKeyUsage,
		AllowSHA1Requests: s.AllowSHA1Requests,
		KeyIDs:            keyIDs(s.KeyIDs),
	}
	if b := s.BasicConstraints; b != nil {
		c.BasicConstraints = &profile.BasicConstraints{CA: b.CA}
		if b.PathLenConstraint != nil {
			c.BasicConstraints.PathLenConstraint = new(int(*b.PathLenConstraint))
		}
	}
	if n := s.SubjectAltNames; n != nil {
		c.SubjectAltNames = &profile.SubjectAltNames{Rule: n.Rule, Required: n.Required, DNS: n.DNS, IP: n.IP, URI: n.URI, Email: n.Email}
	}
	if p := s.CRLDistributionPoints; p != nil {
		c.CRLDistributionPoints = &profile.CRLDistributionPoints{Rule: p.Rule, URI: p.URI}
	}
	return c
}

func encryptData(e *v1alpha1.EncryptData) *profile.EncryptData {
	if e == nil {
		return nil
	}
	return &profile.EncryptData{
		EncryptAlg:     e.EncryptAlg,
		KeySize:        int(e.KeySize),
		NonceStrategy:  e.NonceStrategy,
		TagLength:      int(e.TagLength),
		ShortTagLength: int(e.ShortTagLength),
		KeyIDs:         keyIDs(e.KeyIDs),
	}
}

func signData(s *v1alpha1.SignData) *profile.SignData {
	if s == nil {
		return nil
	}
	d := &profile.SignData{
		SigningMode:     s.SigningMode,
		SignAlg:         s.SignAlg,
		HashAlg:         s.HashAlg,
		SignatureFormat: s.SignatureFormat,
		KeyIDs:          keyIDs(s.KeyIDs),
	}
	if k := s.KeyConstraints; k != nil {
		d.KeyConstraints = profile.KeyConstraints{Subject: keySizes(k.Subject), Issuer: keySizes(k.Issuer)}
	}
	return d
}

func keySizes(algorithms *v1alpha1.KeyAlgorithms) map[string]profile.KeySize {
	if algorithms == nil {
		return nil
	}
	sizes := map[string]profile.KeySize{}
	if size := algorithms.RSA; size != nil {
		sizes["RSA"] = profile.KeySize{MinKeySize: int(size.MinKeySize), MaxKeySize: int(size.MaxKeySize)}
	}
	if size := algorithms.ECDSA; size != nil {
		sizes["ECDSA"] = profile.KeySize{MinKeySize: int(size.MinKeySize), MaxKeySize: int(size.MaxKeySize)}
	}
	if size := algorithms.Ed25519; size != nil {
		sizes["Ed25519"] = profile.KeySize{MinKeySize: int(size.MinKeySize), MaxKeySize: int(size.MaxKeySize)}
	}
	return sizes
}

func keyIDs(ids []v1alpha1.KeyID) []profile.KeyID {
	if ids == nil {
		return nil
	}
	out := make([]profile.KeyID, len(ids))
	for i, id := range ids {
		out[i] = profile.KeyID{ID: id.ID, SPKISHA256: id.SPKISHA256}
	}
	return out
}

// values reads free-form JSON. A whole number stays a whole number.
func values(in map[string]apiextensionsv1.JSON) (map[string]any, error) {
	if in == nil {
		return nil, nil
	}
	out := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		var value any
		if err := json.Unmarshal(in[key].Raw, &value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = value
	}
	return out, nil
}
