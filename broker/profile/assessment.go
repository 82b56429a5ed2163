// SPDX-License-Identifier: Apache-2.0

package profile

// Assessment is what can be said of an operation of a profile without a call.
type Assessment struct {
	// Operation is its name, such as "SignData".
	Operation string
	// Algorithm is the name that replies have, such as "ecdsa-with-sha-256".
	Algorithm string
	// Strength is that of the weakest use that the profile allows.
	Strength Strength
	// FIPS reports whether the operation is approved.
	FIPS FIPSVerdict
	// Refused reports that every call of it is refused, because the set was compiled
	// with RequireFIPS and the operation is not approved.
	Refused bool
}

// Assessments judge each operation that the profile offers, in the order of
// StrengthOf. The caller must not change them.
func (c *Compiled) Assessments() []Assessment { return c.assessments }

// Strength is that of the whole profile, see StrengthOf.
func (c *Compiled) Strength() Strength { return c.strength }

// assess judges a valid profile that is compiled.
func (c *Compiled) assess(p *Profile, o compileOptions) {
	var strengths []Strength
	for _, row := range sections {
		s := row.of(&p.API)
		if s == nil {
			continue
		}
		for i, judgement := range s.judge() {
			strength := judgement.strength()
			strength.Operation = row.Operations[i]
			strengths = append(strengths, strength)
			verdict := FIPSVerdict{row.Operations[i], judgement.objection}
			c.assessments = append(c.assessments, Assessment{
				Operation: row.Operations[i],
				Algorithm: judgement.algorithm,
				Strength:  strength,
				FIPS:      verdict,
				Refused:   o.requireFIPS && !verdict.Approved(),
			})
		}
	}
	for _, whole := range weakest(strengths) {
		c.strength = whole
	}
}
