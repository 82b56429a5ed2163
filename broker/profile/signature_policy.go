// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// SignatureFormat is the encoding of a signature.
type SignatureFormat uint8

// The formats. Profiles and the wire contract have the same names.
const (
	SignatureRAW SignatureFormat = iota
	SignatureDER
	SignaturePEM
	SignatureCMS
)

var signatureFormatNames = [...]string{
	SignatureRAW: "RAW", SignatureDER: "DER", SignaturePEM: "PEM", SignatureCMS: "CMS",
}

// String returns the name that profiles use, in upper case.
func (f SignatureFormat) String() string { return signatureFormatNames[f] }

// FindSignatureFormat returns the format with this name. Upper and lower case do not matter.
func FindSignatureFormat(name string) (SignatureFormat, bool) {
	for i, known := range signatureFormatNames {
		if strings.EqualFold(known, name) {
			return SignatureFormat(i), true
		}
	}
	return 0, false
}

// SignatureComponent is one signature with its algorithm.
type SignatureComponent struct {
	Algorithm algorithm.Signature
	// Hash is the digest of the input that is signed, 0 if the algorithm signs the input
	// itself.
	Hash crypto.Hash
}

// SignaturePolicy is what a profile says about SignData and VerifyData.
type SignaturePolicy struct {
	components    []SignatureComponent
	name          string
	format        SignatureFormat
	fixed         bool
	signs, checks KeyLimits
	keys          *KeyPolicy
	requireFIPS   bool
}

// Components returns the signatures to make. A hybrid has two, the classical one first.
func (s *SignaturePolicy) Components() []SignatureComponent { return s.components }

// Algorithm returns the name in replies, such as "ecdsa-with-sha-256". The name of a hybrid
// is like "ecdsa-with-sha-256+ml-dsa-65".
func (s *SignaturePolicy) Algorithm() string { return s.name }

// Format returns the only format that requests may ask for. It reports false if they may ask
// for any format.
func (s *SignaturePolicy) Format() (SignatureFormat, bool) { return s.format, s.fixed }

// Signs returns the limits of the keys that sign. If a profile limits only one of signing
// and verifying, the limits count for both.
func (s *SignaturePolicy) Signs() KeyLimits { return s.signs }

// Checks returns the limits of the keys that verify, see [SignaturePolicy.Signs].
func (s *SignaturePolicy) Checks() KeyLimits { return s.checks }

// Keys returns which keys of the broker may be used. It is nil if requests bring their keys.
func (s *SignaturePolicy) Keys() *KeyPolicy { return s.keys }

// RequiresFIPS reports whether FIPS 140-3 has to approve keys as well, see [RequireFIPS].
func (s *SignaturePolicy) RequiresFIPS() bool { return s.requireFIPS }

// HasCMS reports whether a CMS SignedData can have the signature. There has to be one
// component, and RFC 5754 has to define an identifier for its algorithm and digest.
func HasCMS(components []SignatureComponent) bool {
	return len(components) == 1 && len(components[0].Algorithm.CMS(components[0].Hash)) > 0
}
