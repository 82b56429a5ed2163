// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto"
	"crypto/x509"
	"maps"
	"strings"
	"time"
)

// CertificatePolicy is what a profile says about SignCertificate. It never
// changes and is safe for concurrent use.
type CertificatePolicy struct {
	signature           x509.SignatureAlgorithm
	keyIdentifier       crypto.Hash
	notBefore, notAfter time.Duration
	subject, issuer     KeyLimits
	usage               x509.KeyUsage
	extendedUsage       []x509.ExtKeyUsage
	ca                  bool
	pathLen             int
	names               *NamePolicy
	keys                *KeyPolicy
	keyIDs              []string
	requireFIPS         bool
}

// SignatureAlgorithm is how the issuer signs.
func (p *CertificatePolicy) SignatureAlgorithm() x509.SignatureAlgorithm { return p.signature }

// SignatureAlgorithmName is the name that the signature algorithm's object
// identifier has in RFC 4055, 5758, 8017 or 8410, such as "ecdsa-with-SHA512".
// It is what replies carry.
func (p *CertificatePolicy) SignatureAlgorithmName() string {
	return certificateSignatureNames[p.signature]
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

// CA tells whether certificates are for certificate authorities, and how many
// more may follow on a path; -1 is any number.
func (p *CertificatePolicy) CA() (ca bool, pathLen int) { return p.ca, p.pathLen }

// Names is the rule for alternative names, never nil.
func (p *CertificatePolicy) Names() *NamePolicy { return p.names }

// Keys says which of the broker's keys may sign, nil where none may.
func (p *CertificatePolicy) Keys() *KeyPolicy { return p.keys }

// RequiresFIPS tells that keys and requests must be approved as well, see
// RequireFIPS.
func (p *CertificatePolicy) RequiresFIPS() bool { return p.requireFIPS }

// KeyIDs are the ids of the broker's keys that may sign, in the profile's order;
// empty where requests bring their keys. The caller must not change it.
func (p *CertificatePolicy) KeyIDs() []string { return p.keyIDs }

var (
	certificateSignatures = map[string]map[string]x509.SignatureAlgorithm{
		"rsa":     {"sha-256": x509.SHA256WithRSA, "sha-384": x509.SHA384WithRSA, "sha-512": x509.SHA512WithRSA},
		"rsa-pss": {"sha-256": x509.SHA256WithRSAPSS, "sha-384": x509.SHA384WithRSAPSS, "sha-512": x509.SHA512WithRSAPSS},
		"ecdsa":   {"sha-256": x509.ECDSAWithSHA256, "sha-384": x509.ECDSAWithSHA384, "sha-512": x509.ECDSAWithSHA512},
		"ed25519": {"": x509.PureEd25519},
	}

	certificateSignatureNames = map[x509.SignatureAlgorithm]string{
		x509.SHA256WithRSA:    "sha256WithRSAEncryption",
		x509.SHA384WithRSA:    "sha384WithRSAEncryption",
		x509.SHA512WithRSA:    "sha512WithRSAEncryption",
		x509.SHA256WithRSAPSS: "id-RSASSA-PSS",
		x509.SHA384WithRSAPSS: "id-RSASSA-PSS",
		x509.SHA512WithRSAPSS: "id-RSASSA-PSS",
		x509.ECDSAWithSHA256:  "ecdsa-with-SHA256",
		x509.ECDSAWithSHA384:  "ecdsa-with-SHA384",
		x509.ECDSAWithSHA512:  "ecdsa-with-SHA512",
		x509.PureEd25519:      "id-Ed25519",
	}

	keyIdentifierHashes = map[string]crypto.Hash{
		"":         crypto.SHA1,
		"sha-1":    crypto.SHA1,
		"sha-256":  crypto.SHA256,
		"sha-384":  crypto.SHA384,
		"sha-512":  crypto.SHA512,
		"sha3-256": crypto.SHA3_256,
		"sha3-384": crypto.SHA3_384,
		"sha3-512": crypto.SHA3_512,
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

// compileCertificate makes a valid SignCertificate ready.
func compileCertificate(s *SignCertificate, o compileOptions) *CertificatePolicy {
	if s == nil {
		return nil
	}
	p := &CertificatePolicy{
		signature:     lookUp(certificateSignatures[strings.ToLower(s.SignAlg)], strings.ToLower(s.HashAlg)),
		keyIdentifier: lookUp(keyIdentifierHashes, strings.ToLower(s.SKIHashAlg)),
		notBefore:     wholeSeconds(s.Validity.ValidNotBeforeOffset, time.Second-1),
		notAfter:      wholeSeconds(s.Validity.ValidNotAfterOffset, 0),
		subject:       listedKeys(s.KeyConstraints.Subject),
		issuer:        listedKeys(s.KeyConstraints.Issuer),
		pathLen:       -1,
		requireFIPS:   o.requireFIPS,
		names:         compileNames(s.SubjectAltNames),
		keys:          compileKeyIDs(s.KeyIDs, o.manager),
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
	return p
}

// listedKeys allows what is listed and nothing else, so that an empty list does
// not fall back to the default of KeyLimits.
func listedKeys(sizes map[string]KeySize) KeyLimits {
	if sizes == nil {
		return KeyLimits{}
	}
	return maps.Clone(sizes)
}

// lookUp finds a name that the validator has accepted.
func lookUp[V any](values map[string]V, name string) V {
	value, ok := values[name]
	if !ok {
		panic("profile: compile of a profile that was not validated: " + name)
	}
	return value
}

// wholeSeconds reads a valid duration. It is cut to seconds towards the past
// after slack was added: with a second less a nanosecond, towards the future.
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
