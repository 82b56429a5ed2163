// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
)

// shown is the output of commands about a set of profiles, from a file or from a broker.
type shown struct {
	Digest string `json:"digest"`
	// Broker is nil if the set comes from a file.
	Broker   *shownBroker   `json:"broker,omitempty"`
	Profiles []shownProfile `json:"profiles"`
}

// shownBroker is the cryptographic module of a broker.
type shownBroker struct {
	Module       string `json:"module"`
	Mode         string `json:"mode"`
	RequiresFIPS bool   `json:"requiresFIPS"`
}

type shownProfile struct {
	Name        string                  `json:"name"`
	Strength    shownStrength           `json:"strength"`
	Operations  []shownOperation        `json:"operations"`
	Deprecation *connection.Deprecation `json:"deprecation,omitempty"`
}

type shownStrength struct {
	Bits  int    `json:"bits"`
	Limit string `json:"limit"`
}

type shownOperation struct {
	Name      string        `json:"name"`
	Algorithm string        `json:"algorithm"`
	Strength  shownStrength `json:"strength"`
	FIPS      shownFIPS     `json:"fips"`
	Refused   bool          `json:"refused"`
}

type shownFIPS struct {
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

func shownSet(set *profile.Set) *shown {
	s := &shown{Digest: set.Digest(), Profiles: []shownProfile{}}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		whole := p.Strength()
		row := shownProfile{Name: name, Strength: shownStrength{whole.Bits, whole.Limit}}
		for _, a := range p.Assessments() {
			row.Operations = append(row.Operations, shownOperation{
				Name: a.Operation, Algorithm: a.Algorithm, Refused: a.Refused,
				Strength: shownStrength{a.Strength.Bits, a.Strength.Limit},
				FIPS:     shownFIPS{a.FIPS.Approved(), a.FIPS.Reason},
			})
		}
		if d := p.Deprecation(); d != nil {
			row.Deprecation = &connection.Deprecation{ReplacedBy: d.ReplacedBy, DeprecatedSince: d.DeprecatedSince, RemoveAfter: d.RemoveAfter, Reason: d.Reason}
		}
		s.Profiles = append(s.Profiles, row)
	}
	return s
}

func shownPage(page *policyv1.ListProfilesResponse) *shown {
	fips := page.GetFips()
	s := &shown{
		Digest: page.GetDigest(), Profiles: []shownProfile{},
		Broker: &shownBroker{fips.GetModule(), fips.GetMode(), fips.GetRequired()},
	}
	strength := func(s *policyv1.Strength) shownStrength { return shownStrength{int(s.GetBits()), s.GetLimit()} }
	for _, p := range page.GetProfiles() {
		row := shownProfile{Name: p.GetName(), Strength: strength(p.GetStrength())}
		for _, o := range p.GetOperations() {
			row.Operations = append(row.Operations, shownOperation{
				Name: o.GetName(), Algorithm: o.GetAlgorithm(), Refused: o.GetRefused(), Strength: strength(o.GetStrength()),
				FIPS: shownFIPS{o.GetFips().GetApproved(), o.GetFips().GetReason()},
			})
		}
		if d := p.GetDeprecation(); d != nil {
			row.Deprecation = &connection.Deprecation{
				ReplacedBy: d.GetReplacedBy(), DeprecatedSince: d.GetDeprecatedSince(), RemoveAfter: d.GetRemoveAfter(), Reason: d.GetReason(),
			}
		}
		s.Profiles = append(s.Profiles, row)
	}
	return s
}

// write writes the set as text or as JSON.
func (s *shown) write(w io.Writer, output string) error {
	if output == commandline.FormatJSON {
		return commandline.WriteJSON(w, s)
	}
	var text strings.Builder
	if b := s.Broker; b != nil {
		required := "not required"
		if b.RequiresFIPS {
			required = "required"
		}
		fmt.Fprintf(&text, "Go Cryptographic Module %s, FIPS 140-3 mode %s, %s\n\n", b.Module, b.Mode, required)
	}
	for i, p := range s.Profiles {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s: %d bits\n", p.Name, p.Strength.Bits)
		if p.Deprecation != nil {
			fmt.Fprintf(&text, "  deprecated%s\n", p.Deprecation)
		}
		p.table(&text)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// table writes one line for each operation.
func (p *shownProfile) table(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range p.Operations {
		verdict := "FIPS 140-3 approves it"
		if !o.FIPS.Approved {
			verdict = "not FIPS 140-3: " + o.FIPS.Reason
		}
		if o.Refused {
			verdict = "refused, " + verdict
		}
		fmt.Fprintf(table, "  %s\t%s\t%d bits\t%s\t%s\n", o.Name, o.Algorithm, o.Strength.Bits, o.Strength.Limit, verdict)
	}
	_ = table.Flush() // a strings.Builder takes everything
}
