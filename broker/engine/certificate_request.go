// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// Limits of the CRL distribution points of a request.
const (
	// maxDistributionPoints is the maximum number of distribution points that a request may have.
	maxDistributionPoints = 16
	// maxDistributionPointSize is the longest URL in bytes.
	maxDistributionPointSize = 2048
)

// parseCSR reads the first block of a PEM text as a certificate request. It does not verify
// the signature. checkSubjectKey does so, after it has checked the size of the key.
func parseCSR(text []byte) (*x509.CertificateRequest, error) {
	der, err := firstBlock("csr", "a certificate request", text, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")
	if err != nil {
		return nil, err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, inputError("csr", "%s", damaged("request of PKCS #10", err))
	}
	return csr, nil
}

// ParseCertificate reads the first block of a PEM text as a certificate. field is the name of
// the field in errors.
func ParseCertificate(field string, text []byte) (*x509.Certificate, error) {
	der, err := firstBlock(field, "a certificate", text, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, inputError(field, "%s", damaged("certificate of X.509", err))
	}
	return certificate, nil
}

// firstBlock returns the content of the first block of a PEM text.
func firstBlock(field, what string, text []byte, labels ...string) ([]byte, error) {
	if len(text) == 0 {
		return nil, inputError(field, "is empty, expected %s in PEM", what)
	}
	block, _ := pem.Decode(pemtext.WithoutMark(text))
	if block == nil {
		return nil, inputError(field, "has no complete PEM block, expected %s in PEM", what)
	}
	if slices.Contains(labels, block.Type) {
		return block.Bytes, nil
	}
	return nil, inputError(field, "has a PEM block %s, expected %q", quote(block.Type, 32), labels[0])
}

// damaged returns the message of a library about a certificate or a request on one line of at
// most some 200 characters. It may quote them, because certificates and requests are public.
func damaged(what string, err error) string {
	var structural asn1.StructuralError
	var syntax asn1.SyntaxError
	if errors.As(err, &structural) || errors.As(err, &syntax) {
		return "is damaged: the content of its PEM block is not a " + what
	}
	text := []rune(strings.ToValidUTF8(strings.TrimPrefix(err.Error(), "x509: "), "."))
	const longest = 160
	if len(text) > longest {
		text = append(text[:longest], '…')
	}
	for i, r := range text {
		if !unicode.IsPrint(r) {
			text[i] = '.'
		}
	}
	return "is damaged or of a kind that is not supported: " + string(text)
}

// quote returns the first longest bytes of a text in quotes. The text must not be secret.
func quote(text string, longest int) string {
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return fmt.Sprintf("%q", text)
}

// checkSubjectKey checks that the profile allows the key of a request, and that the requester
// has the private key.
func checkSubjectKey(policy *profile.CertificatePolicy, csr *x509.CertificateRequest) error {
	if problem := keyProblem(policy.SubjectKeys(), "subjects", csr.PublicKey); problem != "" {
		return inputError("csr", "is for %s", problem)
	}
	if policy.RequiresFIPS() {
		if problem := UnapprovedKey(csr.PublicKey, nil); problem != "" {
			return inputError("csr", "is for %s", problem)
		}
		if algorithm := csr.SignatureAlgorithm; isSHA1(algorithm) {
			return inputError("csr", "is signed with %s, which FIPS 140-3 does not approve, and this broker requires FIPS 140-3, expected SHA-256 or a longer digest", algorithm)
		}
	}
	if algorithm := csr.SignatureAlgorithm; isSHA1(algorithm) && !policy.AllowsSHA1Requests() {
		return inputError("csr", "is signed with %s, which the profile does not allow, expected SHA-256 or a longer digest", algorithm)
	}
	err := csr.CheckSignature()
	var insecure x509.InsecureAlgorithmError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &insecure):
		return inputError("csr", "is signed with %s, which is not secure, expected SHA-256 or a longer digest", x509.SignatureAlgorithm(insecure))
	case errors.Is(err, x509.ErrUnsupportedAlgorithm):
		return inputError("csr", "is signed with an algorithm that is not supported, expected RSA, ECDSA or Ed25519")
	default:
		return inputError("csr", "has a signature that its own public key does not verify, expected a signature by the private key of the certificate")
	}
}

// isSHA1 reports whether a signature algorithm that the library supports uses SHA-1.
func isSHA1(algorithm x509.SignatureAlgorithm) bool {
	return algorithm == x509.SHA1WithRSA || algorithm == x509.ECDSAWithSHA1
}

// keyProblem returns what is wrong with a key by the limits of a profile. It is empty if the
// key is allowed.
func keyProblem(limits keyrules.Limits, whose string, public crypto.PublicKey) string {
	algorithm, bits := describeKey(public)
	if bits == 0 {
		return fmt.Sprintf("a key of an algorithm that is not supported, expected %s", describeLimits(limits))
	}
	_, listed := limits.Range(algorithm)
	switch {
	case !listed:
		return fmt.Sprintf("%s key, expected what the profile allows for %s: %s", article(algorithm), whose, describeLimits(limits))
	case !limits.Allow(algorithm, bits):
		return fmt.Sprintf("%s key of %d bits, expected what the profile allows for %s: %s", article(algorithm), bits, whose, describeLimits(limits))
	}
	return ""
}

// describeLimits returns the keys that are allowed as text, such as "RSA of 2048 to 4096 bits
// or ECDSA of 256 to 521 bits".
func describeLimits(limits keyrules.Limits) string {
	var allowed []string
	for _, algorithm := range []string{"RSA", "ECDSA", "Ed25519"} {
		size, ok := limits.Range(algorithm)
		switch {
		case !ok:
		case algorithm == "Ed25519":
			allowed = append(allowed, algorithm)
		case size.MinKeySize == size.MaxKeySize:
			allowed = append(allowed, fmt.Sprintf("%s of %d bits", algorithm, size.MinKeySize))
		default:
			allowed = append(allowed, fmt.Sprintf("%s of %d to %d bits", algorithm, size.MinKeySize, size.MaxKeySize))
		}
	}
	if len(allowed) == 0 {
		return "no key at all"
	}
	return strings.Join(allowed, " or ")
}

func checkDistributionPoints(policy *extensions.PointPolicy, points []string) error {
	if len(points) > 0 && policy.Rule() == extensions.PointsDenied {
		return inputError("crlDistributionPoints", "is not empty, expected no CRL distribution points, because the profile allows none")
	}
	if len(points) > maxDistributionPoints {
		return inputError("crlDistributionPoints", "has %d entries, expected at most %d", len(points), maxDistributionPoints)
	}
	for i, point := range points {
		field := fmt.Sprintf("crlDistributionPoints[%d]", i)
		if len(point) > maxDistributionPointSize {
			return inputError(field, "has %d bytes, expected at most %d", len(point), maxDistributionPointSize)
		}
		u, err := url.Parse(point)
		if err != nil || u.Host == "" || !isVisibleASCII(point) || !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https") {
			return inputError(field, "is not a URL of http or https in ASCII, such as \"http://crl.example.com/ca.crl\"")
		}
		if policy.Rule() == extensions.PointsMatched && !policy.MatchesURI(point) {
			return inputError(field, "is %s, which no pattern of the profile allows", quote(point, 256))
		}
	}
	return nil
}

func isVisibleASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
