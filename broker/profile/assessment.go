// SPDX-License-Identifier: Apache-2.0

package profile

// Assessment is what is known about an operation of a profile before any call.
type Assessment struct {
	// Operation is the name of the operation, such as "SignData".
	Operation string
	// Algorithm is the name that replies have, such as "ecdsa-with-sha-256".
	Algorithm string
	// Strength is the strength of the weakest use that the profile allows.
	Strength Strength
	// FIPS says whether FIPS 140-3 approves the operation.
	FIPS FIPSVerdict
	// Refused is whether the broker refuses every call of the operation, because the set
	// was compiled with [RequireFIPS] and the operation is not approved.
	Refused bool
}

// Assessments returns an assessment of each operation that the profile offers, in the order
// of [StrengthOf]. The caller must not change them.
func (c *Compiled) Assessments() []Assessment { return c.assessments }

// Assessment returns the assessment of an operation, or nil if the profile does not offer it.
// The caller must not change it.
func (c *Compiled) Assessment(op Operation) *Assessment {
	for i := range c.assessments {
		if c.assessments[i].Operation == op.String() {
			return &c.assessments[i]
		}
	}
	return nil
}

// Strength returns the strength of the whole profile, see [StrengthOf].
func (c *Compiled) Strength() Strength { return c.strength }

// assess sets the assessments and the strength of c, which is compiled from the valid
// profile p.
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
