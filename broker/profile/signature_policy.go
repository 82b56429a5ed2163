// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// SignatureFormat is how a signature is written.
type SignatureFormat uint8

// The formats, named as in profiles and on the wire.
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

// findFormat finds a format by its name, in any case.
func findFormat(name string) (SignatureFormat, bool) {
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
	// Hash digests the input before it is signed, 0 where the algorithm takes
	// the input as a whole.
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

// Components are the signatures to make: one, or for a hybrid two, of which the
// first is the classical one.
func (s *SignaturePolicy) Components() []SignatureComponent { return s.components }

// Algorithm is the name that replies have, such as "ecdsa-with-sha-256" or, for
// a hybrid, "ecdsa-with-sha-256+ml-dsa-65".
func (s *SignaturePolicy) Algorithm() string { return s.name }

// Format is the only format that may be asked for; false where any may.
func (s *SignaturePolicy) Format() (SignatureFormat, bool) { return s.format, s.fixed }

// Signs limits the keys that sign, Checks those that signatures are checked
// with. A profile that limits only one of them means both.
func (s *SignaturePolicy) Signs() KeyLimits { return s.signs }

// Checks limits the keys that signatures are checked with, see Signs.
func (s *SignaturePolicy) Checks() KeyLimits { return s.checks }

// Keys says which of the broker's keys may be used, nil where requests bring
// their own.
func (s *SignaturePolicy) Keys() *KeyPolicy { return s.keys }

// RequiresFIPS reports that keys must be approved as well, see RequireFIPS.
func (s *SignaturePolicy) RequiresFIPS() bool { return s.requireFIPS }

// HasCMS reports whether a CMS SignedData can be made of the signatures: of one
// whose algorithm and digest have an identifier (RFC 5754).
func HasCMS(components []SignatureComponent) bool {
	return len(components) == 1 && len(components[0].Algorithm.CMS(components[0].Hash)) > 0
}
