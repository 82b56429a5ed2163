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
	// FIPS tells whether the operation is approved.
	FIPS FIPSVerdict
	// Refused tells that every call of it is refused, because the set was compiled
	// with RequireFIPS and the operation is not approved.
	Refused bool
}

// Section is the field of a profile that offers an operation.
func Section(operation string) string {
	switch operation {
	case "DecryptData":
		return "API.EncryptData"
	case "VerifyData":
		return "API.SignData"
	default:
		return "API." + operation
	}
}

// Assessments judge each operation that the profile offers, in the order of
// StrengthOf. The caller must not change them.
func (c *Compiled) Assessments() []Assessment { return c.assessments }

// Strength is that of the whole profile, see StrengthOf.
func (c *Compiled) Strength() Strength { return c.strength }

// assess judges a valid profile that is compiled.
func (c *Compiled) assess(p *Profile, o compileOptions) {
	algorithms := c.algorithms()
	verdicts := FIPSVerdicts(p)
	strengths := StrengthOf(p)
	if len(strengths) > 0 {
		c.strength = strengths[len(strengths)-1]
	}
	for i, verdict := range verdicts {
		c.assessments = append(c.assessments, Assessment{
			Operation: verdict.Operation,
			Algorithm: algorithms[verdict.Operation],
			Strength:  strengths[i],
			FIPS:      verdict,
			Refused:   o.requireFIPS && !verdict.Approved(),
		})
	}
}

// algorithms names the algorithm of each operation that the profile offers.
func (c *Compiled) algorithms() map[string]string {
	names := map[string]string{}
	if c.hash != nil {
		names["HashData"] = c.hash.Algorithm().String()
	}
	if c.certificate != nil {
		names["SignCertificate"] = c.certificate.SignatureAlgorithmName()
	}
	if c.cipher != nil {
		names["EncryptData"], names["DecryptData"] = c.cipher.Algorithm(), c.cipher.Algorithm()
	}
	if c.signature != nil {
		names["SignData"], names["VerifyData"] = c.signature.Algorithm(), c.signature.Algorithm()
	}
	return names
}
