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

// Signature is an algorithm of signatures. The zero value is none.
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

// Kind is what a signature algorithm withstands. The zero value is none.
type Kind uint8

const (
	// Classical algorithms fall to a quantum computer.
	Classical Kind = iota + 1
	// PostQuantum algorithms are made to withstand one.
	PostQuantum
)

// digesting says who digests the message. The zero value is no answer.
type digesting uint8

const (
	// byCaller means: the message is digested first, by a digest of the profile.
	byCaller digesting = iota + 1
	// byAlgorithm means: the algorithm takes the whole message.
	byAlgorithm
)

// Certificate is how a signature over a certificate is called.
type Certificate struct {
	// Algorithm is the constant of Go's package crypto/x509.
	Algorithm x509.SignatureAlgorithm
	// Name is that of the object identifier in RFC 4055, 5758, 8017 or 8410, which
	// replies carry.
	Name string
}

// signatureRow is what is known of a signature algorithm.
type signatureRow struct {
	name      string
	kind      Kind
	key       string // the name of a row of keys
	digesting digesting
	approval  Approval
	since     Format
	// certificates are by the digest, 0 where the algorithm takes the whole message;
	// empty where it signs no certificates.
	certificates map[Digest]Certificate
	// cms are the identifiers that a SignerInfo of CMS may name for a digest (RFC
	// 5754, section 3); empty where there are none. For RSA the key's algorithm is
	// allowed as well.
	cms map[crypto.Hash][]asn1.ObjectIdentifier
	// options are the options of a signer, with the hash of the digest or 0.
	options func(crypto.Hash) crypto.SignerOpts
	// verify checks a signature in its standard form: DER for ECDSA, else the octets
	// that the algorithm yields. message is digested where the caller digests.
	verify func(public crypto.PublicKey, hash crypto.Hash, message, signature []byte) bool
}

var signatures = [...]signatureRow{
	RSAPKCS1v15: {"rsa", Classical, RSAKey, byCaller, Approved, Format0,
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
	ECDSA: {"ecdsa", Classical, ECDSAKey, byCaller, Approved, Format0,
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
	RSAPSS: {"rsa-pss", Classical, RSAKey, byCaller, Approved, Format1,
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
	Ed25519: {"ed25519", Classical, Ed25519Key, byAlgorithm, Approved, Format1,
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
	return signatureRow{name, PostQuantum, key, byAlgorithm, NotInModule, Format1,
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
	for _, row := range signatures {
		if row.kind == kind {
			names = append(names, row.name)
		}
	}
	return names
}

// CertificateSignatures returns the names of those that sign certificates.
func CertificateSignatures() []string {
	var names []string
	for _, row := range signatures {
		if len(row.certificates) > 0 {
			names = append(names, row.name)
		}
	}
	return names
}

// FindSignature finds a signature algorithm by its name, in any case.
func FindSignature(name string) (Signature, bool) {
	for i, row := range signatures {
		if row.name != "" && strings.EqualFold(row.name, name) {
			return Signature(i), true
		}
	}
	return 0, false
}

// FindSignatures finds the parts of a SignAlg: one algorithm, or several joined by
// "+". Parts that are none are left out.
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

// Kind is what the algorithm withstands.
func (s Signature) Kind() Kind { return signatures[s].kind }

// Key is the algorithm of its keys.
func (s Signature) Key() Key {
	key, _ := FindKey(signatures[s].key) // a test checks that each row has one
	return key
}

// TakesDigest reports whether a digest of the message is signed, which the profile
// chooses. The other algorithms fix their own.
func (s Signature) TakesDigest() bool { return signatures[s].digesting == byCaller }

// Approval is the verdict of FIPS 140-3.
func (s Signature) Approval() Approval { return signatures[s].approval }

// Certificate is how a signature over a certificate is called with a digest, which
// is 0 for algorithms that fix their own; false where there is none.
func (s Signature) Certificate(digest Digest) (Certificate, bool) {
	c, ok := signatures[s].certificates[digest]
	return c, ok
}

// CMS returns the identifiers that a SignerInfo of CMS may name, the one to write
// first; empty where CMS has none for the digest. The caller must not change them.
func (s Signature) CMS(hash crypto.Hash) []asn1.ObjectIdentifier { return signatures[s].cms[hash] }

// SignerOptions returns the options of a signer. hash is 0 where TakesDigest is false.
func (s Signature) SignerOptions(hash crypto.Hash) crypto.SignerOpts {
	return signatures[s].options(hash)
}

// Verify reports whether a signature in its standard form is valid: DER for ECDSA,
// else the octets that the algorithm yields. message is digested by hash where
// TakesDigest is true. It panics for a key of another algorithm.
func (s Signature) Verify(public crypto.PublicKey, hash crypto.Hash, message, signature []byte) bool {
	return signatures[s].verify(public, hash, message, signature)
}

// SignatureFormat is the version of the profile format that a SignAlg came with:
// the newest of its parts, and Format0 without any.
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
