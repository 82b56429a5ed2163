// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"bytes"
	"context"
	"encoding/pem"
	"time"
)

var signCertificate = newOperation("SignCertificate", 4, issuedMetadata)

// The numbers of the fields in requests and replies of SignCertificate.
const (
	certCSR, certCAKey, certCA, certMetadata                       number = 2, 3, 4, 5
	certNotBefore, certNotAfter, certSubject, certCRLs, certFormat number = 6, 7, 8, 9, 10
	issuedMetadata, issuedPEM, issuedDER, issuedDescriptor         number = 1, 2, 3, 4

	// certificateFormatDER is a value of SignOutputFormat.
	certificateFormatDER = 1
)

// SignCertificateRequest is a request for a certificate.
type SignCertificateRequest struct {
	// Profile is the name of the profile. Empty stands for the profile of [WithProfile].
	Profile string
	// CSR is the certificate request (PKCS #10) in PEM, at most 64 KiB.
	CSR []byte
	// CAPrivateKey is the issuer's private key in PEM, at most 64 KiB. It is empty if the
	// profile names a key of the broker, which is safer.
	CAPrivateKey []byte
	// CACertificate is the issuer's certificate in PEM, at most 64 KiB. It may be empty if
	// the profile names one key of the broker.
	CACertificate []byte
	// NotBefore and NotAfter are the times between which the certificate is valid, cut to
	// seconds. Zero stands for the earliest or the latest time that profile and issuer
	// allow.
	NotBefore, NotAfter time.Time
	// Subject replaces the subject of the CSR. It is text as in RFC 4514, at most 1 KiB,
	// with the components in the order of the certificate.
	Subject string
	// CRLDistributionPoints are at most 16 URLs of at most 2048 bytes each.
	CRLDistributionPoints []string
}

// SignCertificateResult is a certificate.
type SignCertificateResult struct {
	// Certificate is the certificate in DER.
	Certificate []byte
	// Algorithm is the signature algorithm of the profile, such as "ecdsa-with-SHA256".
	Algorithm string
	// Deprecation is the warning of a deprecated profile, else nil.
	Deprecation *Deprecation
}

// PEM returns the certificate in PEM.
func (r SignCertificateResult) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate})
}

// SignCertificate issues a certificate by the rules of a profile.
func (c *Client) SignCertificate(ctx context.Context, r SignCertificateRequest) (SignCertificateResult, error) {
	size := len(r.CSR) + len(r.CAPrivateKey) + len(r.CACertificate) + len(r.Subject)
	for _, url := range r.CRLDistributionPoints {
		size += len(url) + 8
	}
	p, err := c.begin(ctx, signCertificate, r.Profile, size)
	if err != nil {
		return SignCertificateResult{}, err
	}
	defer c.end(p)
	for name, t := range map[string]time.Time{"NotBefore": r.NotBefore, "NotAfter": r.NotAfter} {
		if !t.IsZero() && t.Unix() < 0 {
			return SignCertificateResult{}, failure{code: CodeInvalidArgument, message: said(p.op, p.profile, "%s is %s, expected no time before 1970", name, t)}.error(p.op, p.profile)
		}
	}
	b := appendBytes(*p.request, certCSR, r.CSR)
	b = appendBytes(b, certCAKey, r.CAPrivateKey)
	b = appendBytes(b, certCA, r.CACertificate)
	b = p.trace.appendMetadata(b, certMetadata)
	if !r.NotBefore.IsZero() {
		b = appendUint(b, certNotBefore, uint64(r.NotBefore.Unix()))
	}
	if !r.NotAfter.IsZero() {
		b = appendUint(b, certNotAfter, uint64(r.NotAfter.Unix()))
	}
	b = appendString(b, certSubject, r.Subject)
	for _, url := range r.CRLDistributionPoints {
		b = appendAlways(b, certCRLs, []byte(url))
	}
	*p.request = appendUint(b, certFormat, certificateFormatDER)
	if err := c.do(ctx, p); err != nil {
		return SignCertificateResult{}, err
	}
	var result SignCertificateResult
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case issuedDER:
			result.Certificate = bytes.Clone(f.bytes)
		case issuedDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	switch {
	case err != nil:
		return SignCertificateResult{}, err
	case result.Certificate == nil:
		return SignCertificateResult{}, p.missing("certificate")
	}
	return result, nil
}
