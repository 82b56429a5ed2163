// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"strings"

	"filippo.io/mldsa"
)

// Signature is a signature algorithm. The zero value is not a signature algorithm.
type Signature uint8

// The signature algorithms: RSASSA-PKCS1-v1_5 and RSASSA-PSS (RFC 8017), ECDSA
// (FIPS 186-5), Ed25519 (RFC 8032) and ML-DSA (FIPS 204).
const (
	RSAPKCS1v15 Signature = iota + 1
	ECDSA
	RSAPSS
	Ed25519
	MLDSA44
	MLDSA65
	MLDSA87
)

// digesting says who digests the message. The zero value is not valid.
type digesting uint8

const (
	// byCaller means that the caller digests the message, with a digest of the profile.
	byCaller digesting = iota + 1
	// byAlgorithm means that the algorithm takes the whole message.
	byAlgorithm
)

// Certificate has the names of a signature algorithm in certificates.
type Certificate struct {
	// Algorithm is the constant of Go's package crypto/x509.
	Algorithm x509.SignatureAlgorithm
	// Name is the name of the object identifier in RFC 4055, 5758, 8017 or 8410. Replies
	// have this name.
	Name string
}

// signatureRow is the row of a signature algorithm in the registry.
type signatureRow struct {
	name      string
	key       string // the name of a row of keys
	digesting digesting
	approval  Approval
	since     Format
	// certificates has the names in certificates by digest, or by 0 if the algorithm takes
	// the whole message. It is empty if the algorithm does not sign certificates.
	certificates map[Digest]Certificate
	// cms are the identifiers in a SignerInfo of CMS by digest (RFC 5754, section 3). It is
	// empty if CMS has none. RSA has the identifier of its keys as well.
	cms map[crypto.Hash][]asn1.ObjectIdentifier
	// options returns the options of a signer for a digest, or for 0 if the algorithm takes
	// the whole message.
	options func(crypto.Hash) crypto.SignerOpts
	// verify reports whether a signature is valid. The signature is in DER for ECDSA, and
	// the octets of the algorithm otherwise. message is the digest if the caller digests.
	verify func(public crypto.PublicKey, hash crypto.Hash, message, signature []byte) bool
}

func (r signatureRow) entry() (string, Format) { return r.name, r.since }

var signatures = [...]signatureRow{
	RSAPKCS1v15: {"rsa", RSAKey, byCaller, Approved, Format0,
		map[Digest]Certificate{
			SHA256: {x509.SHA256WithRSA, "sha256WithRSAEncryption"},
			SHA384: {x509.SHA384WithRSA, "sha384WithRSAEncryption"},
			SHA512: {x509.SHA512WithRSA, "sha512WithRSAEncryption"},
		},
		map[crypto.Hash][]asn1.ObjectIdentifier{
			crypto.SHA256: {{1, 2, 840, 113549, 1, 1, 11}, rsaEncryption},
			crypto.SHA384: {{1, 2, 840, 113549, 1, 1, 12}, rsaEncryption},
			crypto.SHA512: {{1, 2, 840, 113549, 1, 1, 13}, rsaEncryption},
		},
		hashOnly,
		func(public crypto.PublicKey, hash crypto.Hash, message, signature []byte) bool {
			return rsa.VerifyPKCS1v15(public.(*rsa.PublicKey), hash, message, signature) == nil
		}},
	ECDSA: {"ecdsa", ECDSAKey, byCaller, Approved, Format0,
		map[Digest]Certificate{
			SHA256: {x509.ECDSAWithSHA256, "ecdsa-with-SHA256"},
			SHA384: {x509.ECDSAWithSHA384, "ecdsa-with-SHA384"},
			SHA512: {x509.ECDSAWithSHA512, "ecdsa-with-SHA512"},
		},
		map[crypto.Hash][]asn1.ObjectIdentifier{
			crypto.SHA256: {{1, 2, 840, 10045, 4, 3, 2}},
			crypto.SHA384: {{1, 2, 840, 10045, 4, 3, 3}},
			crypto.SHA512: {{1, 2, 840, 10045, 4, 3, 4}},
		},
		hashOnly,
		func(public crypto.PublicKey, _ crypto.Hash, message, signature []byte) bool {
			return ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), message, signature)
		}},
	RSAPSS: {"rsa-pss", RSAKey, byCaller, Approved, Format1,
		map[Digest]Certificate{
			SHA256: {x509.SHA256WithRSAPSS, "id-RSASSA-PSS"},
			SHA384: {x509.SHA384WithRSAPSS, "id-RSASSA-PSS"},
			SHA512: {x509.SHA512WithRSAPSS, "id-RSASSA-PSS"},
		},
		map[crypto.Hash][]asn1.ObjectIdentifier{},
		func(hash crypto.Hash) crypto.SignerOpts {
			return &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
		},
		func(public crypto.PublicKey, hash crypto.Hash, message, signature []byte) bool {
			return rsa.VerifyPSS(public.(*rsa.PublicKey), hash, message, signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}},
	Ed25519: {"ed25519", Ed25519Key, byAlgorithm, Approved, Format1,
		map[Digest]Certificate{0: {x509.PureEd25519, "id-Ed25519"}},
		map[crypto.Hash][]asn1.ObjectIdentifier{},
		hashOnly,
		func(public crypto.PublicKey, _ crypto.Hash, message, signature []byte) bool {
			return ed25519.Verify(public.(ed25519.PublicKey), message, signature)
		}},
	MLDSA44: mldsaRow("ml-dsa-44", "ML-DSA-44"),
	MLDSA65: mldsaRow("ml-dsa-65", "ML-DSA-65"),
	MLDSA87: mldsaRow("ml-dsa-87", "ML-DSA-87"),
}

func mldsaRow(name, key string) signatureRow {
	return signatureRow{name, key, byAlgorithm, NotInModule, Format1,
		map[Digest]Certificate{},
		map[crypto.Hash][]asn1.ObjectIdentifier{},
		hashOnly,
		func(public crypto.PublicKey, _ crypto.Hash, message, signature []byte) bool {
			return mldsa.Verify(public.(*mldsa.PublicKey), message, signature, nil) == nil
		}}
}

var rsaEncryption = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}

func hashOnly(hash crypto.Hash) crypto.SignerOpts { return hash }

// Signatures returns the names of all signature algorithms of a kind.
func Signatures(kind Kind) []string {
	var names []string
	for i, row := range signatures[1:] {
		if Signature(i+1).Kind() == kind {
			names = append(names, row.name)
		}
	}
	return names
}

// CertificateSignatures returns the names of all signature algorithms for certificates.
func CertificateSignatures() []string {
	var names []string
	for _, row := range signatures {
		if len(row.certificates) > 0 {
			names = append(names, row.name)
		}
	}
	return names
}

// FindSignature returns the signature algorithm with this name. Upper and lower case do not
// matter.
func FindSignature(name string) (Signature, bool) { return find[Signature](signatures[:], name) }

// FindSignatures returns the algorithms of a SignAlg: one algorithm, or several joined by
// "+". It leaves out unknown names.
func FindSignatures(signAlg string) []Signature {
	var found []Signature
	for part := range strings.SplitSeq(signAlg, "+") {
		if s, known := FindSignature(part); known {
			found = append(found, s)
		}
	}
	return found
}

// String returns the name that profiles use, in lower case.
func (s Signature) String() string { return signatures[s].name }

// Kind returns whether the algorithm resists quantum computers.
func (s Signature) Kind() Kind { return primitive(s.Key().family, 0).Kind }

// Key returns the algorithm of its keys.
func (s Signature) Key() Key {
	key, _ := FindKey(signatures[s].key) // a test checks that each row has one
	return key
}

// TakesDigest reports whether the algorithm signs a digest that the profile chooses. Other
// algorithms take the whole message.
func (s Signature) TakesDigest() bool { return signatures[s].digesting == byCaller }

// Approval returns the verdict of FIPS 140-3.
func (s Signature) Approval() Approval { return signatures[s].approval }

// Certificate returns the names of the algorithm with a digest in certificates. digest is 0 if
// TakesDigest is false. Certificate reports false if certificates cannot have the combination.
func (s Signature) Certificate(digest Digest) (Certificate, bool) {
	c, ok := signatures[s].certificates[digest]
	return c, ok
}

// CMS returns the identifiers that a SignerInfo of CMS may have for a digest. The first one is
// the identifier to write. It returns none if CMS has none. The caller must not change them.
func (s Signature) CMS(hash crypto.Hash) []asn1.ObjectIdentifier { return signatures[s].cms[hash] }

// SignerOptions returns the options of a signer. hash is 0 if TakesDigest is false.
func (s Signature) SignerOptions(hash crypto.Hash) crypto.SignerOpts {
	return signatures[s].options(hash)
}

// Verify reports whether a signature is valid. The signature is in DER for ECDSA, and the
// octets of the algorithm otherwise. message is the digest of the message by hash if
// TakesDigest is true. Verify panics for a key of another algorithm.
func (s Signature) Verify(public crypto.PublicKey, hash crypto.Hash, message, signature []byte) bool {
	return signatures[s].verify(public, hash, message, signature)
}

// SignatureFormat returns the first version of the profile format that has all algorithms of a
// SignAlg. It is Format0 for an empty SignAlg, and the newest version for unknown names.
func SignatureFormat(signAlg string) Format {
	version := Format0
	if signAlg == "" {
		return version
	}
	for part := range strings.SplitSeq(signAlg, "+") {
		since := newest
		if s, known := FindSignature(part); known {
			since = signatures[s].since
		}
		version = max(version, since)
	}
	return version
}
