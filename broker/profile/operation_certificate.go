// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// signCertificateRow is the operation SignCertificate.
var signCertificateRow = SectionRow{
	Name: "SignCertificate",
	Operations: []OperationRow{{
		Operation: OpSignCertificate, Name: "SignCertificate", KeyTasks: DescribeKey | SignWithKey, Newest: true,
		Functions: []string{"sign", "verify"},
	}},
	Refusals:   keyRefusals,
	of:         func(a *API) section { return sectionOf(a.SignCertificate) },
	policy:     func(c *Compiled) policy { return c.certificate },
	primitives: certificatePrimitives,
	objection:  Use.signatureObjection,
}

// latestBegin is the largest ValidNotBeforeOffset, some 292 years: a longer one cannot be rounded up
// to seconds.
var latestBegin = time.Duration(math.MaxInt64).Truncate(time.Second) - time.Second

// SignCertificate is the policy of the SignCertificate operation.
type SignCertificate struct {
	SignAlg          string                      `yaml:"SignAlg"`
	HashAlg          string                      `yaml:"HashAlg,omitempty"`
	SKIHashAlg       string                      `yaml:"SKIHashAlg,omitempty"`
	Validity         Validity                    `yaml:"Validity"`
	KeyConstraints   keyrules.Constraints        `yaml:"KeyConstraints"`
	KeyUsage         []string                    `yaml:"KeyUsage,omitempty"`
	ExtendedKeyUsage []string                    `yaml:"ExtendedKeyUsage,omitempty"`
	BasicConstraints *BasicConstraints           `yaml:"BasicConstraints,omitempty"`
	SubjectAltNames  *extensions.SubjectAltNames `yaml:"SubjectAltNames,omitempty"`
	// CRLDistributionPoints restricts the distribution points of requests. If it is absent, the
	// rule is "any".
	CRLDistributionPoints *extensions.CRLDistributionPoints `yaml:"CRLDistributionPoints,omitempty"`
	// AllowSHA1Requests accepts certificate requests that are signed with SHA-1.
	AllowSHA1Requests bool          `yaml:"AllowSHA1Requests,omitempty"`
	KeyIDs            []keyrules.ID `yaml:"KeyIds,omitempty"`
}

// Validity bounds a certificate's lifetime relative to the time of signing,
// as Go durations ("-1h", "8760h").
type Validity struct {
	ValidNotBeforeOffset string `yaml:"ValidNotBeforeOffset"`
	ValidNotAfterOffset  string `yaml:"ValidNotAfterOffset"`
}

// BasicConstraints is the extension of RFC 5280, section 4.2.1.9.
type BasicConstraints struct {
	CA bool `yaml:"CA,omitempty"`
	// PathLenConstraint is only valid with CA.
	PathLenConstraint *int `yaml:"PathLenConstraint,omitempty"`
}

func (s *SignCertificate) validate(v validator, at yamlfile.Place) {
	v.Enum(at.Field("SignAlg"), at, s.SignAlg, algorithm.CertificateSignatures())
	v.signHash(at, s.SignAlg, s.HashAlg, algorithm.Digests(algorithm.ForCertificates))
	if s.SKIHashAlg != "" || v.Present(at.Field("SKIHashAlg")) {
		v.Enum(at.Field("SKIHashAlg"), at, s.SKIHashAlg, algorithm.Digests(algorithm.ForKeyIdentifiers))
	}
	v.validity(at.Field("Validity"), at, s.Validity)
	s.KeyConstraints.Check(v.Report, at.Field("KeyConstraints"))
	exact := func(a, b string) bool { return a == b }
	for i, usage := range s.KeyUsage {
		where := at.Field("KeyUsage").Index(i)
		v.OneOf(where, where, usage, keyUsages, exact)
	}
	for i, usage := range s.ExtendedKeyUsage {
		where := at.Field("ExtendedKeyUsage").Index(i)
		v.OneOf(where, where, usage, extendedKeyUsages, exact)
	}
	if b := s.BasicConstraints; b != nil && b.PathLenConstraint != nil {
		where := at.Field("BasicConstraints").Field("PathLenConstraint")
		if *b.PathLenConstraint < 0 || *b.PathLenConstraint > 255 {
			v.Add(where, where, "found %d, expected a number of certificates from 0 to 255", *b.PathLenConstraint)
		} else if !b.CA {
			v.Add(where, where, "is only allowed where CA is true")
		}
	}
	s.SubjectAltNames.Check(v.Report, at.Field("SubjectAltNames"))
	s.CRLDistributionPoints.Check(v.Report, at.Field("CRLDistributionPoints"))
	for i, key := range s.KeyIDs {
		if where := at.Field("KeyIds").Index(i); key.ID == keyrules.AnyID {
			v.Add(where.Field("Id"), where, "found %q, which stands for every key of the broker, expected the id of the issuer's key: requests of SignCertificate have no field that names one", key.ID)
		}
	}
	keyrules.CheckIDs(v.Report, at.Field("KeyIds"), s.KeyIDs)
}

func (v validator) validity(at, around yamlfile.Place, validity Validity) {
	if v.Failed[at] {
		return
	}
	if !v.Present(at) {
		v.Required(at, around, "ValidNotBeforeOffset and ValidNotAfterOffset")
		return
	}
	before, ok := v.Duration(at.Field("ValidNotBeforeOffset"), at, validity.ValidNotBeforeOffset)
	after, also := v.Duration(at.Field("ValidNotAfterOffset"), at, validity.ValidNotAfterOffset)
	switch where := at.Field("ValidNotAfterOffset"); {
	case !ok || !also:
	case before > latestBegin:
		v.Add(at.Field("ValidNotBeforeOffset"), at, "found %q, expected at most %s", validity.ValidNotBeforeOffset, latestBegin)
	case after <= 0:
		v.Add(where, at, "found %q, expected a time after the signing, or every certificate would be expired", validity.ValidNotAfterOffset)
	case after <= before:
		v.Add(where, at, "found %q, expected more than ValidNotBeforeOffset, which is %q", validity.ValidNotAfterOffset, validity.ValidNotBeforeOffset)
	}
}

func (s *SignCertificate) format() algorithm.Format {
	return max(
		algorithm.SignatureFormat(s.SignAlg), algorithm.DigestFormat(s.HashAlg), algorithm.DigestFormat(s.SKIHashAlg), s.KeyConstraints.Format(),
		formatOf(s.SubjectAltNames != nil || s.CRLDistributionPoints != nil || s.AllowSHA1Requests || len(s.KeyIDs) > 0),
	)
}

func (s *SignCertificate) compile(c *Compiled, o compileOptions) {
	p := &CertificatePolicy{
		signature:     s.signature(),
		signAlg:       validated(algorithm.FindSignature(s.SignAlg)),
		keyIdentifier: s.keyIdentifier().Hash(),
		notBefore:     wholeSeconds(s.Validity.ValidNotBeforeOffset, time.Second-1),
		notAfter:      wholeSeconds(s.Validity.ValidNotAfterOffset, 0),
		subject:       keyrules.OnlyListed(s.KeyConstraints.Subject),
		issuer:        keyrules.OnlyListed(s.KeyConstraints.Issuer),
		pathLen:       -1,
		requireFIPS:   o.requireFIPS,
		names:         s.SubjectAltNames.Policy(),
		points:        s.CRLDistributionPoints.Policy(),
		sha1Requests:  s.AllowSHA1Requests,
		keys:          keyrules.NewPolicy(s.KeyIDs, o.manager.rules()),
	}
	p.algorithm = p.signAlg.String()
	if digest, takes := algorithm.FindDigest(s.HashAlg); takes {
		p.algorithm = withDigest(p.signAlg, digest)
	}
	for _, key := range s.KeyIDs {
		p.keyIDs = append(p.keyIDs, strings.Clone(key.ID))
	}
	for _, usage := range s.KeyUsage {
		p.usage |= lookUp(keyUsageBits, usage)
	}
	for _, usage := range s.ExtendedKeyUsage {
		p.extendedUsage = append(p.extendedUsage, lookUp(extendedKeyUsageValues, usage))
	}
	if b := s.BasicConstraints; b != nil {
		p.ca = b.CA
		if b.PathLenConstraint != nil {
			p.pathLen = *b.PathLenConstraint
		}
	}
	c.certificate = p
}

// Certificate returns the policy of SignCertificate, or nil if the profile does not offer it.
func (c *Compiled) Certificate() *CertificatePolicy { return c.certificate }

// signature returns the algorithm and the digest with which the issuer signs.
func (s *SignCertificate) signature() algorithm.Certificate {
	sign := validated(algorithm.FindSignature(s.SignAlg))
	digest, _ := algorithm.FindDigest(s.HashAlg) // none if the algorithm fixes its own
	return validated(sign.Certificate(digest))
}

// keyIdentifier returns the digest for identifiers of keys.
func (s *SignCertificate) keyIdentifier() algorithm.Digest {
	if s.SKIHashAlg == "" {
		return algorithm.SHA1
	}
	return validated(algorithm.FindDigest(s.SKIHashAlg))
}

func (s *SignCertificate) judge() []judgement {
	issuer := keyrules.Limits(s.KeyConstraints.Issuer)
	parts := []Strength{signatureStrength(s.SignAlg, s.HashAlg, issuer)}
	for _, name := range slices.Sorted(maps.Keys(s.KeyConstraints.Subject)) {
		parts = append(parts, KeyStrength(name, s.KeyConstraints.Subject[name].MinKeySize))
	}
	objection := cmp.Or(
		signatureObjection(s.SignAlg, s.HashAlg, issuer),
		s.subjectObjection(), // the signature of the request is checked with it
		digestObjection("SKIHashAlg", s.keyIdentifier()),
	)
	if objection == "" && s.AllowSHA1Requests {
		objection = "AllowSHA1Requests allows requests that are signed with SHA-1, which FIPS 140-3 does not approve"
	}
	return []judgement{{s.signature().Name, parts, objection}}
}

// subjectObjection returns why FIPS 140-3 does not approve the keys of subjects. It is empty if
// FIPS 140-3 approves them.
func (s *SignCertificate) subjectObjection() string {
	for _, name := range slices.Sorted(maps.Keys(s.KeyConstraints.Subject)) {
		key, _ := algorithm.FindKey(name)
		if why := key.Approval.Objection(); why != "" {
			return fmt.Sprintf("KeyConstraints list %s keys, %s", name, why)
		}
		if s.KeyConstraints.Subject[name].MinKeySize < key.MinApprovedSize {
			return shortKeys(key)
		}
	}
	return ""
}

func (s *SignCertificate) listedKeys() []keyrules.ID { return s.KeyIDs }

func (s *SignCertificate) warn(w warner, at yamlfile.Place, _ *Profile, manager *KMS) {
	w.issuers(at, s)
	w.curves(at, s.KeyConstraints)
	w.external(at, s.KeyIDs, manager)
}

// issuers warns of constraints that allow no issuer or no subject. SignCertificate refuses all
// keys that are not listed, so an empty list allows none.
func (w warner) issuers(at yamlfile.Place, s *SignCertificate) {
	where := at.Field("KeyConstraints")
	sign, _ := algorithm.FindSignature(s.SignAlg)
	if _, listed := s.KeyConstraints.Issuer[sign.Key().Name]; !listed {
		w.Add(where.Field("Issuer"), w.nearest(where, at), "does not list %q, the keys of SignAlg %q, so that every issuer is refused", sign.Key().Name, s.SignAlg)
	}
	if len(s.KeyConstraints.Subject) == 0 {
		w.Add(where.Field("Subject"), w.nearest(where, at), "lists no keys, so that every request is refused, expected at least one of %s", yamlfile.List(algorithm.ListedKeyNames()))
	}
}

// wholeSeconds parses a valid duration, adds slack, and rounds down to seconds. With a slack of a
// second less a nanosecond, it rounds up.
func wholeSeconds(text string, slack time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("profile: compile of a profile that was not validated: " + err.Error())
	}
	floor := (d + slack).Truncate(time.Second)
	if floor > d+slack { // Truncate goes towards zero
		floor -= time.Second
	}
	return floor
}

func (p *CertificatePolicy) effect(u Use) (Effect, string) {
	issuer, subject := u.Keys[0], u.Keys[1]
	subjects := p.SubjectKeys().Refusal(subject.Algorithm, subject.Bits)
	if subjects != "" {
		subjects = "subjects with " + subjects
	}
	if why := cmp.Or(p.Keys().Refusal(issuer.ID), wrongKey(issuer, p.IssuerKey()), p.IssuerKeys().Refusal(issuer.Algorithm, issuer.Bits), subjects); why != "" {
		return Refused, why
	}
	if u.SHA1Request && (p.RequiresFIPS() || !p.AllowsSHA1Requests()) {
		return Refused, "requests that are signed with SHA-1"
	}
	return changed(u.Algorithm, p.Algorithm())
}

func (p *CertificatePolicy) extremes(Operation) (all []Use) {
	for _, id := range p.keys.Sources() {
		for _, subject := range slices.Sorted(maps.Keys(p.subject)) {
			for _, smallest := range []bool{true, false} {
				u := Use{Operation: OpSignCertificate, Algorithm: p.algorithm, SHA1Request: p.sha1Requests}
				u.Keys = [2]UsedKey{extreme(p.issuer, p.IssuerKey(), smallest), extreme(p.subject, subject, smallest)}
				u.Keys[0].ID = id
				all = append(all, u)
			}
		}
	}
	return all
}

// certificatePrimitives returns the primitives of a certificate: of its signature, of the
// subject's key, and of the signature of the request.
func certificatePrimitives(u Use) (halves [][]algorithm.Primitive, known bool) {
	halves, known = signaturePrimitives(u.Algorithm, u.Keys[:1])
	subject, found := keyPrimitive(u.Keys[1])
	if !known || !found {
		return nil, false
	}
	halves[0] = append(halves[0], subject)
	if u.SHA1Request {
		halves[0] = append(halves[0], algorithm.SHA1.Primitive())
	}
	return halves, true
}
