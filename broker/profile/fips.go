// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// FIPSVerdict says whether an operation of a profile is an approved service of the Go
// Cryptographic Module v1.0.0 in its FIPS 140-3 mode.
type FIPSVerdict struct {
	// Operation is the name of the operation, such as "SignData".
	Operation string
	// Reason says in a sentence why the operation is not approved. It is empty if it is
	// approved.
	Reason string
}

// Approved reports whether the operation is approved.
func (v FIPSVerdict) Approved() bool { return v.Reason == "" }

// FIPSVerdicts returns a verdict on each operation that a valid profile offers. An operation
// is approved only if everything that the profile allows for it is approved.
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

// approved refuses profiles that offer no operation that FIPS 140-3 approves.
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
			v.Add(at.Field("API"), at, "has no operation that FIPS 140-3 approves, expected at least one, because this broker serves no others (%s)", strings.Join(reasons, "; "))
		}
	}
}
