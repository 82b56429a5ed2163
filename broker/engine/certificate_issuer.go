// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// keyProblem returns an error about the issuer's key. It is an [InputError] if the key came
// with the request, and a [PreconditionError] if the broker has the key, because the caller
// cannot correct that.
func (i Issuer) keyProblem(format string, args ...any) error {
	if i.KeyID != "" {
		return preconditionError("the issuer's key %q %s", i.KeyID, fmt.Sprintf(format, args...))
	}
	return inputError("caPrivateKey", format, args...)
}

// certificateProblem returns an error about the issuer's certificate, as keyProblem does
// about the key.
func (i Issuer) certificateProblem(format string, args ...any) error {
	if i.KeyID != "" {
		return preconditionError("the certificate of the issuer's key %q %s", i.KeyID, fmt.Sprintf(format, args...))
	}
	return inputError("caCert", format, args...)
}

// pssDigests are the sizes in bytes of the digests of RSASSA-PSS. The salts have the same
// sizes.
var pssDigests = map[x509.SignatureAlgorithm]int{
	x509.SHA256WithRSAPSS: crypto.SHA256.Size(),
	x509.SHA384WithRSAPSS: crypto.SHA384.Size(),
	x509.SHA512WithRSAPSS: crypto.SHA512.Size(),
}

// checkIssuer checks that key and certificate of the issuer fit each other and the profile.
func checkIssuer(policy *profile.CertificatePolicy, issuer Issuer, now time.Time) error {
	certificate := issuer.Certificate
	public := issuer.Key.Public()
	if !SamePublicKey(public, certificate.PublicKey) {
		return issuer.keyProblem("is not the key of the issuer's certificate, expected the private key that belongs to its public key")
	}
	if problem := keyProblem(policy.IssuerKeys(), "issuers", public); problem != "" {
		return issuer.keyProblem("is %s", problem)
	}
	algorithm, bits := describeKey(public)
	if want := policy.IssuerKey(); algorithm != want {
		return issuer.keyProblem("is %s key, expected %s key, because the profile signs with %s", article(algorithm), article(want), policy.SignatureAlgorithm())
	}
	// The key has to have room for digest, salt and two bytes (RFC 8017, section 9.1.1).
	if digest := pssDigests[policy.SignatureAlgorithm()]; digest > 0 && (bits-1+7)/8 < 2*digest+2 {
		return issuer.keyProblem("is an RSA key of %d bits, expected at least %d, because the profile signs with %s", bits, 8*(2*digest+1)+2, policy.SignatureAlgorithm())
	}
	if policy.RequiresFIPS() {
		if problem := UnapprovedKey(public, issuer.Key); problem != "" {
			return issuer.keyProblem("is %s", problem)
		}
	}
	return checkAuthority(policy, issuer, now)
}

// checkAuthority checks that the issuer's certificate allows to issue certificates (RFC 5280,
// sections 4.2.1.3, 4.2.1.9 and 6.1.4).
func checkAuthority(policy *profile.CertificatePolicy, issuer Issuer, now time.Time) error {
	certificate := issuer.Certificate
	ca, _ := policy.CA()
	switch {
	case now.After(certificate.NotAfter):
		return issuer.certificateProblem("expired at %s, expected a certificate that is still valid", stamp(certificate.NotAfter))
	case string(certificate.RawSubject) == emptyName:
		return issuer.certificateProblem("has an empty subject, expected the name of an issuer")
	case !certificate.BasicConstraintsValid || !certificate.IsCA:
		return issuer.certificateProblem("is not the certificate of a certificate authority, expected BasicConstraints with CA:TRUE")
	case hasKeyUsage(certificate) && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return issuer.certificateProblem("is not for signing certificates, expected KeyUsage with keyCertSign, or no KeyUsage")
	case ca && certificate.MaxPathLen == 0 && certificate.MaxPathLenZero:
		return issuer.certificateProblem("allows no certificate authority below it (path length 0), but the profile makes certificate authorities")
	}
	return nil
}

// hasKeyUsage reports whether a certificate has the extension KeyUsage. The library reads an
// extension without a bit that it knows as none, and verifiers refuse such an issuer.
func hasKeyUsage(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(certificate.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(oidKeyUsage) })
}
