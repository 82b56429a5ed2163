// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"time"

	"github.com/smallstep/pkcs7"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// cmsDepth is how deep the elements of a CMS signature and of its certificates may nest. Usual
// signatures have a depth of about 12.
const cmsDepth = 32

// cmsDigests are the identifiers of digests in SignedData (RFC 5754, section 2).
var cmsDigests = map[crypto.Hash]asn1.ObjectIdentifier{
	crypto.SHA256: pkcs7.OIDDigestAlgorithmSHA256,
	crypto.SHA384: pkcs7.OIDDigestAlgorithmSHA384,
	crypto.SHA512: pkcs7.OIDDigestAlgorithmSHA512,
}

// signCMS returns a detached SignedData (RFC 5652, section 5). It has the signed attributes
// content type, message digest and signing time, and the certificates of the key.
func signCMS(c profile.SignatureComponent, key SigningKey, input []byte) ([]byte, error) {
	if err := checkSignerCertificate(key.Certificates, time.Now()); err != nil {
		return nil, err
	}
	signed, err := pkcs7.NewSignedData(input)
	if err != nil {
		return nil, err
	}
	signed.SetDigestAlgorithm(cmsDigests[c.Hash])
	if err := signed.AddSigner(key.Certificates[0], key.Signer, pkcs7.SignerInfoConfig{}); err != nil {
		return nil, err
	}
	for _, issuer := range key.Certificates[1:] {
		signed.AddCertificate(issuer)
	}
	signed.Detach()
	return signed.Finish()
}

// checkSignerCertificate checks that verifiers can accept the certificate of the signer.
func checkSignerCertificate(certificates []*x509.Certificate, now time.Time) error {
	if len(certificates) == 0 {
		return preconditionError("format CMS needs the certificate of the signer, which only a key in the key directory can have; this key has none")
	}
	certificate := certificates[0]
	switch {
	case now.Before(certificate.NotBefore):
		return preconditionError("the certificate of the key is not valid before %s", certificate.NotBefore.UTC().Format(time.RFC3339))
	case now.After(certificate.NotAfter):
		return preconditionError("the certificate of the key expired at %s", certificate.NotAfter.UTC().Format(time.RFC3339))
	case certificate.KeyUsage != 0 && certificate.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0:
		return preconditionError("the certificate of the key is not for signatures: its key usage has neither digitalSignature nor contentCommitment")
	}
	return nil
}

// verifyCMS reports whether a detached SignedData of one signer is valid. Only the key of the
// request is trusted. verifyCMS reads certificates in the signature to find the certificate
// of this key, and does not verify a certificate path.
func verifyCMS(c profile.SignatureComponent, key VerifyingKey, input, signature []byte) (bool, error) {
	malformed := func(format string, args ...any) (bool, error) {
		return false, inputError("signature", format, args...)
	}
	if !oneDER(signature, cmsDepth) {
		return malformed("is not DER, expected a detached CMS SignedData")
	}
	signed, err := pkcs7.Parse(signature)
	switch {
	case err != nil || len(signed.Signers) == 0:
		return malformed("is not a CMS SignedData with a signer named by issuer and serial number")
	case len(signed.Signers) > 1:
		return malformed("has %d signers, expected one", len(signed.Signers))
	case len(signed.Content) > 0:
		return malformed("has its content inside, expected a detached CMS SignedData")
	}
	signer := signed.Signers[0]
	if !signer.DigestAlgorithm.Algorithm.Equal(cmsDigests[c.Hash]) || !oneOf(c.Algorithm.CMS(c.Hash), signer.DigestEncryptionAlgorithm.Algorithm) {
		return malformed("names other algorithms than %s with %s, which the profile prescribes", c.Algorithm, c.Hash)
	}
	// Signed attributes are required. Without them, an attacker could present a signature of
	// attributes as a signature of content (RFC 5652, section 11).
	var contentType asn1.ObjectIdentifier
	if err := signed.UnmarshalSignedAttribute(pkcs7.OIDAttributeContentType, &contentType); err != nil || !contentType.Equal(pkcs7.OIDData) {
		return malformed("has no signed attributes, or their content type is not data")
	}
	named := func(certificate *x509.Certificate) bool {
		return certificate.SerialNumber.Cmp(signer.IssuerAndSerialNumber.SerialNumber) == 0 &&
			bytes.Equal(certificate.RawIssuer, signer.IssuerAndSerialNumber.IssuerName.FullBytes)
	}
	candidates := certificatesOf(append(signed.Certificates, key.Certificates...), named)
	if len(candidates) == 0 {
		return malformed("has no certificate of its signer, and the key has none with that issuer and serial number")
	}
	signed.Certificates = certificatesOf(candidates, func(certificate *x509.Certificate) bool {
		return SamePublicKey(certificate.PublicKey, key.Public)
	})
	if len(signed.Certificates) == 0 {
		return false, nil // another key has made the signature
	}
	signed.Content = input
	err = signed.Verify()
	var untimely *pkcs7.SigningTimeNotValidError
	if errors.As(err, &untimely) {
		return malformed("was signed at %s, when the certificate of its signer was not valid", untimely.SigningTime.UTC().Format(time.RFC3339))
	}
	return err == nil, nil
}

func oneOf(allowed []asn1.ObjectIdentifier, found asn1.ObjectIdentifier) bool {
	for _, oid := range allowed {
		if oid.Equal(found) {
			return true
		}
	}
	return false
}
