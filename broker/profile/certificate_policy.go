// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto"
	"crypto/x509"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// CertificatePolicy is what a profile says about SignCertificate. It never
// changes and is safe for concurrent use.
type CertificatePolicy struct {
	signature           algorithm.Certificate
	keyIdentifier       crypto.Hash
	notBefore, notAfter time.Duration
	subject, issuer     KeyLimits
	usage               x509.KeyUsage
	extendedUsage       []x509.ExtKeyUsage
	ca                  bool
	pathLen             int
	names               *NamePolicy
	points              *PointPolicy
	sha1Requests        bool
	keys                *KeyPolicy
	keyIDs              []string
	requireFIPS         bool
}

// SignatureAlgorithm is how the issuer signs.
func (p *CertificatePolicy) SignatureAlgorithm() x509.SignatureAlgorithm {
	return p.signature.Algorithm
}

// SignatureAlgorithmName is the name that the signature algorithm's object
// identifier has in RFC 4055, 5758, 8017 or 8410, such as "ecdsa-with-SHA512".
// It is what replies carry.
func (p *CertificatePolicy) SignatureAlgorithmName() string {
	return p.signature.Name
}

// KeyIdentifierHash is the digest that key identifiers are made with, SHA-1
// unless the profile says otherwise.
func (p *CertificatePolicy) KeyIdentifierHash() crypto.Hash { return p.keyIdentifier }

// Window returns the first and the last moment of a certificate's validity
// that the profile allows, for a certificate that is signed now. Certificates
// count in seconds, and so does the window: it is never wider than the profile
// says.
func (p *CertificatePolicy) Window(now time.Time) (earliest, latest time.Time) {
	now = now.UTC().Truncate(time.Second)
	return now.Add(p.notBefore), now.Add(p.notAfter)
}

// SubjectKeys limits the keys that certificates are made for.
func (p *CertificatePolicy) SubjectKeys() KeyLimits { return p.subject }

// IssuerKeys limits the keys that certificates are signed with.
func (p *CertificatePolicy) IssuerKeys() KeyLimits { return p.issuer }

// KeyUsage is the extension of RFC 5280, section 4.2.1.3; zero is none.
func (p *CertificatePolicy) KeyUsage() x509.KeyUsage { return p.usage }

// ExtendedKeyUsage is the extension of RFC 5280, section 4.2.1.12. The caller
// must not change it.
func (p *CertificatePolicy) ExtendedKeyUsage() []x509.ExtKeyUsage { return p.extendedUsage }

// CA reports whether certificates are for certificate authorities, and how many
// more may follow on a path; -1 is any number.
func (p *CertificatePolicy) CA() (ca bool, pathLen int) { return p.ca, p.pathLen }

// Names is the rule for alternative names, never nil.
func (p *CertificatePolicy) Names() *NamePolicy { return p.names }

// DistributionPoints is the rule for CRL distribution points, never nil.
func (p *CertificatePolicy) DistributionPoints() *PointPolicy { return p.points }

// AllowsSHA1Requests reports whether a request may be signed with SHA-1.
func (p *CertificatePolicy) AllowsSHA1Requests() bool { return p.sha1Requests }

// Keys says which of the broker's keys may sign, nil where none may.
func (p *CertificatePolicy) Keys() *KeyPolicy { return p.keys }

// RequiresFIPS reports that keys and requests must be approved as well, see
// RequireFIPS.
func (p *CertificatePolicy) RequiresFIPS() bool { return p.requireFIPS }

// KeyIDs are the ids of the broker's keys that may sign, in the profile's order;
// empty where requests bring their keys. The caller must not change it.
func (p *CertificatePolicy) KeyIDs() []string { return p.keyIDs }

// Names of certificate extensions are exact, because they are identifiers of RFC
// 5280.
var (
	keyUsages = []string{
		"digitalSignature", "contentCommitment", "nonRepudiation", "keyEncipherment", "dataEncipherment",
		"keyAgreement", "keyCertSign", "cRLSign", "encipherOnly", "decipherOnly",
	}
	extendedKeyUsages = []string{
		"serverAuth", "clientAuth", "codeSigning", "emailProtection", "timeStamping", "OCSPSigning",
	}

	// contentCommitment is the newer name of nonRepudiation, the bit is the same.
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

// lookUp finds a name that the validator has accepted.
func lookUp[V any](values map[string]V, name string) V {
	value, ok := values[name]
	if !ok {
		panic("profile: compile of a profile that was not validated: " + name)
	}
	return value
}
