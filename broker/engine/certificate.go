// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine/subject"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// CertificateRequest has what a caller asks for in SignCertificate: the CSR, and what may replace or
// extend its content.
type CertificateRequest struct {
	// CSR is a PKCS #10 request in PEM (RFC 2986, RFC 7468). Only the first
	// block is read.
	CSR []byte
	// Subject replaces the subject of the CSR unless it is empty, see package
	// subject.
	Subject string
	// NotBefore and NotAfter are in seconds since 1970. If one is nil, the certificate is
	// valid from as early, or until as late, as profile and issuer allow.
	NotBefore, NotAfter *uint64
	// CRLDistributionPoints are URLs with http or https.
	CRLDistributionPoints []string
}

// Issuer is who signs certificates. The key may be outside of the broker.
type Issuer struct {
	Key         crypto.Signer
	Certificate *x509.Certificate
	// KeyID is the id of the key, if the broker has the key and its certificate. It is
	// empty if both came with the request.
	KeyID string
}

// Issued is a certificate and what its request used of the profile.
type Issued struct {
	// DER is the certificate.
	DER []byte
	// Subject is the kind of the key that the certificate is made for.
	Subject profile.UsedKey
	// SHA1Request reports whether the request was signed with SHA-1.
	SHA1Request bool
}

// IssueCertificate returns the certificate that [Issue] makes, in DER.
func IssueCertificate(policy *profile.CertificatePolicy, issuer Issuer, request CertificateRequest, now time.Time) ([]byte, error) {
	issued, err := Issue(policy, issuer, request, now)
	return issued.DER, err
}

// Issue makes a certificate (RFC 5280) by the rules of a profile. now is the time of signing.
//
// The subject is the subject of the CSR byte for byte, or the subject of the request. The
// issuer is the subject of the issuer's certificate byte for byte. The certificate has only
// the extensions that the profile demands. Of the extensions of a CSR, it can have only the
// alternative names, if the profile allows them.
//
// Issue grants the period that the request asks for, or refuses the request. It
// never shortens the period. If the request has no period, the certificate is valid for as
// long as the profile and the issuer's certificate allow.
//
// If the issuer's certificate has name constraints, the names of the certificate have to be
// within them.
func Issue(policy *profile.CertificatePolicy, issuer Issuer, request CertificateRequest, now time.Time) (Issued, error) {
	csr, err := parseCSR(request.CSR)
	if err != nil {
		return Issued{}, err
	}
	rawSubject, err := subjectOf(request, csr)
	if err != nil {
		return Issued{}, err
	}
	if err := checkDistributionPoints(policy.DistributionPoints(), request.CRLDistributionPoints); err != nil {
		return Issued{}, err
	}
	if err := checkIssuer(policy, issuer, now); err != nil {
		return Issued{}, err
	}
	notBefore, notAfter, err := period(policy, issuer, request, now)
	if err != nil {
		return Issued{}, err
	}
	if err := checkSubjectKey(policy, csr); err != nil {
		return Issued{}, err
	}
	if err := checkSubject(policy.Names(), request.subjectField(), rawSubject); err != nil {
		return Issued{}, err
	}
	names, err := alternativeNames(policy.Names(), csr)
	if err != nil {
		return Issued{}, err
	}
	ca, pathLen := policy.CA()
	nameless := string(rawSubject) == emptyName
	switch {
	case nameless && ca:
		return Issued{}, inputError("csr", "has an empty subject, expected a subject there or in the field subject, because the profile makes certificate authorities")
	case nameless && names == nil:
		return Issued{}, inputError("csr", "has an empty subject, expected a subject there or in the field subject: without a subject and without alternative names that the profile allows, the certificate would name nobody")
	}
	if err := checkNameConstraints(issuer, request, rawSubject, names); err != nil {
		return Issued{}, err
	}
	subjectKeyID, err := keyIdentifier(policy, csr.RawSubjectPublicKeyInfo)
	if err != nil {
		return Issued{}, err
	}
	authorityKeyID := issuer.Certificate.SubjectKeyId
	if len(authorityKeyID) == 0 {
		if authorityKeyID, err = keyIdentifier(policy, issuer.Certificate.RawSubjectPublicKeyInfo); err != nil {
			return Issued{}, err
		}
	}
	template := &x509.Certificate{
		// The library adds a serial number of 159 random bits.
		SignatureAlgorithm:    policy.SignatureAlgorithm(),
		RawSubject:            rawSubject,
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              policy.KeyUsage(),
		ExtKeyUsage:           policy.ExtendedKeyUsage(),
		SubjectKeyId:          subjectKeyID,
		AuthorityKeyId:        authorityKeyID,
		CRLDistributionPoints: request.CRLDistributionPoints,
	}
	if ca {
		template.BasicConstraintsValid, template.IsCA = true, true
		template.MaxPathLen, template.MaxPathLenZero = pathLen, pathLen == 0
	} else {
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oidBasicConstraints, Value: notCA})
	}
	if names != nil {
		// The extension is critical if the subject is empty (RFC 5280, section 4.2.1.6).
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oidSubjectAltName, Critical: nameless, Value: names})
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Certificate, csr.PublicKey, issuer.Key)
	if err != nil {
		return Issued{}, fmt.Errorf("engine: sign the certificate: %w", err)
	}
	return Issued{der, UsedKey(csr.PublicKey, ""), isSHA1(csr.SignatureAlgorithm)}, nil
}

// subjectField returns the name of the field that has the subject.
func (r CertificateRequest) subjectField() string {
	if r.Subject != "" {
		return "subject"
	}
	return "csr"
}

// emptyName is the DER of a name without components.
const emptyName = "\x30\x00"

func subjectOf(request CertificateRequest, csr *x509.CertificateRequest) ([]byte, error) {
	if request.Subject == "" {
		return csr.RawSubject, nil
	}
	der, err := subject.Parse(request.Subject)
	if err != nil {
		return nil, inputError("subject", "cannot be read: %v", err)
	}
	return der, nil
}

// lastTime is the last moment that a certificate can have (RFC 5280, section 4.1.2.5), in
// seconds since 1970.
var lastTime = uint64(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix())

// period returns when the certificate is valid.
func period(policy *profile.CertificatePolicy, issuer Issuer, request CertificateRequest, now time.Time) (notBefore, notAfter time.Time, err error) {
	earliest, latest := policy.Window(now)
	notBefore, notAfter = earliest, latest
	if issuer.Certificate.NotBefore.After(notBefore) {
		notBefore = issuer.Certificate.NotBefore
	}
	if issuer.Certificate.NotAfter.Before(notAfter) {
		notAfter = issuer.Certificate.NotAfter
	}
	if notBefore.After(notAfter) {
		return notBefore, notAfter, issuer.certificateProblem("is valid from %s to %s, expected a time that the profile allows, %s to %s",
			stamp(issuer.Certificate.NotBefore), stamp(issuer.Certificate.NotAfter), stamp(earliest), stamp(latest))
	}
	for _, limit := range []struct {
		field string
		asked *uint64
		time  *time.Time
	}{{"validNotBefore", request.NotBefore, &notBefore}, {"validNotAfter", request.NotAfter, &notAfter}} {
		if limit.asked == nil {
			continue
		}
		if *limit.asked > lastTime {
			return notBefore, notAfter, inputError(limit.field, "is %d, expected seconds since 1970, at most %d, the end of the year 9999", *limit.asked, lastTime)
		}
		asked := time.Unix(int64(*limit.asked), 0).UTC()
		if asked.Before(earliest) || asked.After(latest) {
			return notBefore, notAfter, inputError(limit.field, "is %s, expected a time that the profile allows, %s to %s", stamp(asked), stamp(earliest), stamp(latest))
		}
		if asked.Before(issuer.Certificate.NotBefore) || asked.After(issuer.Certificate.NotAfter) {
			return notBefore, notAfter, inputError(limit.field, "is %s, expected a time when the issuer's certificate is valid, %s to %s",
				stamp(asked), stamp(issuer.Certificate.NotBefore), stamp(issuer.Certificate.NotAfter))
		}
		*limit.time = asked
	}
	if notBefore.After(notAfter) {
		field := "validNotAfter"
		if request.NotAfter == nil {
			field = "validNotBefore"
		}
		return notBefore, notAfter, inputError(field, "makes the certificate end at %s, before it begins at %s", stamp(notAfter), stamp(notBefore))
	}
	return notBefore, notAfter, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
