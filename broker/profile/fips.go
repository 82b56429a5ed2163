// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// FIPSVerdict reports whether an operation of a profile is an approved service of
// the Go Cryptographic Module v1.0.0 in its FIPS 140-3 mode.
type FIPSVerdict struct {
	// Operation is its name, such as "SignData".
	Operation string
	// Reason says why it is outside, in a sentence; empty where it is approved.
	Reason string
}

// Approved reports that nothing is in the way.
func (v FIPSVerdict) Approved() bool { return v.Reason == "" }

// FIPSVerdicts judges each operation that a valid profile offers, by all that it
// allows: what could be used outside of the standard is outside.
func FIPSVerdicts(p *Profile) []FIPSVerdict {
	var all []FIPSVerdict
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			for i, judgement := range s.judge() {
				all = append(all, FIPSVerdict{row.Operations[i], judgement.objection})
			}
		}
	}
	return all
}

// approved refuses profiles of which nothing would be served where FIPS 140-3 is
// required.
func (v validator) approved(doc *Document) {
	for i := range doc.Profiles {
		if v.Invalid[yamlfile.Root] || v.Invalid[i] {
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
			at := yamlfile.Item(i)
			v.Add(at.Field("API"), at, "has no operation that FIPS 140-3 approves, expected one at least, since this broker serves no others (%s)", strings.Join(reasons, "; "))
		}
	}
}
