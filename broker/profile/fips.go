// SPDX-License-Identifier: Apache-2.0

package profile

import "strings"

// FIPSVerdict tells whether an operation of a profile is an approved service of
// the Go Cryptographic Module v1.0.0 in its FIPS 140-3 mode.
type FIPSVerdict struct {
	// Operation is its name, such as "SignData".
	Operation string
	// Reason says why it is outside, in a sentence; empty where it is approved.
	Reason string
}

// Approved tells that nothing is in the way.
func (v FIPSVerdict) Approved() bool { return v.Reason == "" }

// FIPSVerdicts judges each operation that a valid profile offers, by all that it
// allows: what could be used outside of the standard is outside.
func FIPSVerdicts(p *Profile) []FIPSVerdict {
	var all []FIPSVerdict
	if p.API.HashData != nil {
		all = append(all, FIPSVerdict{Operation: "HashData"}) // FIPS 180-4 and FIPS 202
	}
	if s := p.API.SignCertificate; s != nil {
		reason := fipsSignature(s.SignAlg, KeyLimits(s.KeyConstraints.Issuer))
		if size, listed := s.KeyConstraints.Subject["RSA"]; reason == "" && listed && size.MinKeySize < minApprovedRSAKeySize {
			reason = shortRSAKeys // the signature of the request is checked with it
		}
		if reason == "" && (s.SKIHashAlg == "" || strings.EqualFold(s.SKIHashAlg, "sha-1")) {
			reason = "SKIHashAlg is SHA-1, which FIPS 140-3 does not approve; choose another one"
		}
		if reason == "" && s.AllowSHA1Requests {
			reason = "AllowSHA1Requests lets in requests that are signed with SHA-1, which FIPS 140-3 does not approve"
		}
		all = append(all, FIPSVerdict{"SignCertificate", reason})
	}
	if e := p.API.EncryptData; e != nil {
		reason := ""
		if !strings.EqualFold(e.NonceStrategy, "random") {
			reason = "the caller makes the nonce, which FIPS 140-3 does not approve for AES-GCM (implementation guidance C.H); choose NonceStrategy random"
		}
		all = append(all, FIPSVerdict{"EncryptData", reason}, FIPSVerdict{Operation: "DecryptData"})
	}
	if s := p.API.SignData; s != nil {
		policy := compileSignature(s, compileOptions{})
		all = append(all,
			FIPSVerdict{"SignData", fipsSignature(s.SignAlg, policy.Signs())},
			FIPSVerdict{"VerifyData", fipsSignature(s.SignAlg, policy.Checks())})
	}
	return all
}

// minApprovedRSAKeySize is the shortest modulus in bits of FIPS 186-5, section
// 5.1.
const minApprovedRSAKeySize = 2048

const shortRSAKeys = "KeyConstraints allow RSA keys below 2048 bits, which FIPS 186-5 does not approve"

// approved refuses profiles of which nothing would be served where FIPS 140-3 is
// required.
func (v validator) approved(doc *Document) {
	for i := range doc.Profiles {
		if v.invalid[root] || v.invalid[i] {
			continue
		}
		var reasons []string
		verdicts := FIPSVerdicts(&doc.Profiles[i])
		for _, verdict := range verdicts {
			if !verdict.Approved() {
				reasons = append(reasons, verdict.Operation+": "+verdict.Reason)
			}
		}
		if len(reasons) == len(verdicts) {
			at := place{i, ""}
			v.add(at.field("API"), at, "has no operation that FIPS 140-3 approves, expected one at least, since this broker serves no others (%s)", strings.Join(reasons, "; "))
		}
	}
}

// fipsSignature returns why a signature algorithm is outside of FIPS 186-5 or of
// what the module has, or nothing.
func fipsSignature(sign string, limits KeyLimits) string {
	for part := range strings.SplitSeq(strings.ToLower(sign), "+") {
		if strings.HasPrefix(part, "ml-dsa-") {
			return "SignAlg has " + part + ", which the validated module does not have"
		}
		if signingKeyAlgorithms[part] == "RSA" {
			if size, _ := limits.Range("RSA"); size.MinKeySize < minApprovedRSAKeySize {
				return shortRSAKeys
			}
		}
	}
	return ""
}
