// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto"
	"crypto/x509"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// CertificatePolicy is the compiled policy of SignCertificate. It never changes and is safe for
// concurrent use.
type CertificatePolicy struct {
	signature           algorithm.Certificate
	signAlg             algorithm.Signature
	algorithm           string
	keyIdentifier       crypto.Hash
	notBefore, notAfter time.Duration
	subject, issuer     keyrules.Limits
	usage               x509.KeyUsage
	extendedUsage       []x509.ExtKeyUsage
	ca                  bool
	pathLen             int
	names               *extensions.NamePolicy
	points              *extensions.PointPolicy
	sha1Requests        bool
	keys                *keyrules.Policy
	keyIDs              []string
	requireFIPS         bool
}

// SignatureAlgorithm returns the algorithm with which the issuer signs.
func (p *CertificatePolicy) SignatureAlgorithm() x509.SignatureAlgorithm {
	return p.signature.Algorithm
}

// SignatureAlgorithmName returns the name of the signature algorithm in replies. It is the
// name of the object identifier in RFC 4055, 5758, 8017 or 8410, such as
// "ecdsa-with-SHA512".
func (p *CertificatePolicy) SignatureAlgorithmName() string {
	return p.signature.Name
}

// Algorithm returns the names of package algorithm, such as "ecdsa-with-sha-512". Unlike
// the names of object identifiers, it always has the digest.
func (p *CertificatePolicy) Algorithm() string { return p.algorithm }

// IssuerKey returns the name of the algorithm of keys that the signature needs, such as "RSA".
func (p *CertificatePolicy) IssuerKey() string { return p.signAlg.Key().Name }

// KeyIdentifierHash returns the digest for key identifiers. It is SHA-1 unless the profile
// names another.
func (p *CertificatePolicy) KeyIdentifierHash() crypto.Hash { return p.keyIdentifier }

// Window returns the first and the last moment of validity that the profile allows for a
// certificate that is signed now. Both are whole seconds, as in certificates, and the window is
// never wider than in the profile.
func (p *CertificatePolicy) Window(now time.Time) (earliest, latest time.Time) {
	now = now.UTC().Truncate(time.Second)
	return now.Add(p.notBefore), now.Add(p.notAfter)
}

// SubjectKeys returns the limits of the keys that certificates are made for.
func (p *CertificatePolicy) SubjectKeys() keyrules.Limits { return p.subject }

// IssuerKeys returns the limits of the keys that certificates are signed with.
func (p *CertificatePolicy) IssuerKeys() keyrules.Limits { return p.issuer }

// KeyUsage returns the extension of RFC 5280, section 4.2.1.3. Zero is no extension.
func (p *CertificatePolicy) KeyUsage() x509.KeyUsage { return p.usage }

// ExtendedKeyUsage returns the extension of RFC 5280, section 4.2.1.12. The caller must not
// change it.
func (p *CertificatePolicy) ExtendedKeyUsage() []x509.ExtKeyUsage { return p.extendedUsage }

// CA reports whether certificates are for certificate authorities. pathLen is the maximum number
// of certificate authorities that may follow on a path (RFC 5280, section 4.2.1.9), -1 for any
// number.
func (p *CertificatePolicy) CA() (ca bool, pathLen int) { return p.ca, p.pathLen }

// Names returns the rule for alternative names. It is never nil.
func (p *CertificatePolicy) Names() *extensions.NamePolicy { return p.names }

// DistributionPoints returns the rule for CRL distribution points. It is never nil.
func (p *CertificatePolicy) DistributionPoints() *extensions.PointPolicy { return p.points }

// AllowsSHA1Requests reports whether a request may be signed with SHA-1.
func (p *CertificatePolicy) AllowsSHA1Requests() bool { return p.sha1Requests }

// Keys returns which keys of the broker may sign. It is nil if none may.
func (p *CertificatePolicy) Keys() *keyrules.Policy { return p.keys }

// RequiresFIPS reports whether FIPS 140-3 has to approve keys and requests as well, see
// [RequireFIPS].
func (p *CertificatePolicy) RequiresFIPS() bool { return p.requireFIPS }

// KeyIDs returns the ids of the broker's keys that may sign, in the order of the profile. It
// is empty if requests bring their keys. The caller must not change it.
func (p *CertificatePolicy) KeyIDs() []string { return p.keyIDs }

// The names of key usages. Upper and lower case matter, because the names are identifiers of
// RFC 5280.
var (
	keyUsages = []string{
		"digitalSignature", "contentCommitment", "nonRepudiation", "keyEncipherment", "dataEncipherment",
		"keyAgreement", "keyCertSign", "cRLSign", "encipherOnly", "decipherOnly",
	}
	extendedKeyUsages = []string{
		"serverAuth", "clientAuth", "codeSigning", "emailProtection", "timeStamping", "OCSPSigning",
	}

	// contentCommitment is the newer name of nonRepudiation. Both are the same bit.
	keyUsageBits = map[string]x509.KeyUsage{
		"digitalSignature":  x509.KeyUsageDigitalSignature,
		"contentCommitment": x509.KeyUsageContentCommitment,
		"nonRepudiation":    x509.KeyUsageContentCommitment,
		"keyEncipherment":   x509.KeyUsageKeyEncipherment,
		"dataEncipherment":  x509.KeyUsageDataEncipherment,
		"keyAgreement":      x509.KeyUsageKeyAgreement,
		"keyCertSign":       x509.KeyUsageCertSign,
		"cRLSign":           x509.KeyUsageCRLSign,
		"encipherOnly":      x509.KeyUsageEncipherOnly,
		"decipherOnly":      x509.KeyUsageDecipherOnly,
	}

	extendedKeyUsageValues = map[string]x509.ExtKeyUsage{
		"serverAuth":      x509.ExtKeyUsageServerAuth,
		"clientAuth":      x509.ExtKeyUsageClientAuth,
		"codeSigning":     x509.ExtKeyUsageCodeSigning,
		"emailProtection": x509.ExtKeyUsageEmailProtection,
		"timeStamping":    x509.ExtKeyUsageTimeStamping,
		"OCSPSigning":     x509.ExtKeyUsageOCSPSigning,
	}
)

// lookUp returns the value of a name. The validator has accepted the name.
func lookUp[V any](values map[string]V, name string) V {
	value, ok := values[name]
	if !ok {
		panic("profile: compile of a profile that was not validated: " + name)
	}
	return value
}
