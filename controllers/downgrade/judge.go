// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Candidate is a valid profile that a namespace should serve.
type Candidate struct {
	Profile profile.Profile
	Source  Source
	// Allow is the value of the source's annotation cryptobroker.io/allow-weaker.
	Allow string

	// once compiles the profile when it is first called. Copies of a candidate, which are judged in
	// many namespaces, share it. It is nil for a candidate that is judged once.
	once func() (*profile.Compiled, error)
}

func (c Candidate) compile() (*profile.Compiled, error) {
	if c.once == nil {
		return compiled(c.Profile)
	}
	return c.once()
}

// Candidates returns the parts of a namespace's set, with the annotations of their objects that
// allow changes.
func Candidates(namespace string, parts []render.Part, namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) []Candidate {
	allow := map[Source]string{}
	for i := range namespaced {
		allow[Source{KindNamespaced, namespace, namespaced[i].Name}] = namespaced[i].Annotations[v1alpha1.AllowWeakerAnnotation]
	}
	for i := range cluster {
		allow[Source{KindCluster, "", cluster[i].Name}] = cluster[i].Annotations[v1alpha1.AllowWeakerAnnotation]
	}
	all := make([]Candidate, len(parts))
	for i, part := range parts {
		source := Source{KindNamespaced, namespace, part.Object}
		if part.Cluster {
			source = Source{KindCluster, "", part.Object}
		}
		all[i] = Candidate{Profile: part.Profile, Source: source, Allow: allow[source],
			once: sync.OnceValues(func() (*profile.Compiled, error) { return compiled(part.Profile) })}
	}
	return all
}

// Shortfall is a profile that is weaker than the minimum.
type Shortfall struct {
	Source Source
	// Strength is the strength of the profile, and the part that limits it.
	Strength profile.Strength
	// Minimum is in bits.
	Minimum int
	// Served reports whether an older profile of the name stays in service.
	Served bool
}

// Sentence returns the shortfall as a sentence.
func (s Shortfall) Sentence() string {
	return fmt.Sprintf("The profile has a strength of %d bits by %s, and profiles of this cluster must have at least %d.", s.Strength.Bits, s.Strength.Limit, s.Minimum)
}

// Judgement is the decision about the candidates of a namespace.
type Judgement struct {
	// Served are the profiles to serve, sorted by name: the profiles of the candidates, or older
	// profiles instead of withheld ones.
	Served []profile.Profile
	// Withheld are the changes to weaker profiles that are not allowed, and Allowed are the
	// allowed ones. Both are in the order of the candidates.
	Withheld, Allowed []Change
	// Short are candidates below the minimum strength. They are not served, and no
	// annotation changes that.
	Short []Shortfall
	// After is the State in which Served is served.
	After State
}

// IsUnchanged reports whether exactly the candidates are served.
func (j Judgement) IsUnchanged() bool { return len(j.Withheld)+len(j.Short) == 0 }

// IsWithheld reports whether the change of a source is not served, because it is weaker and not
// allowed, or below the minimum.
func (j Judgement) IsWithheld(source Source) bool {
	return slices.ContainsFunc(j.Withheld, func(c Change) bool { return c.Source == source }) ||
		slices.ContainsFunc(j.Short, func(s Shortfall) bool { return s.Source == source })
}

// Judge decides about the candidates, which have different names. minimum is the minimum strength
// in bits, or 0. The cost grows with the number of candidates and of changes.
func (s State) Judge(candidates []Candidate, minimum int) Judgement {
	var j Judgement
	var weakened []string
	for _, c := range candidates {
		old, served, doubt := s.before(c.Profile)
		same := old != nil && reflect.DeepEqual(*old, c.Profile)
		var strength profile.Strength
		if minimum > 0 {
			strength = strengthOf(c.Profile)
			served = served && (same && strength.Bits >= minimum || !same && MeetsMinimum(*old, minimum))
		}
		keep := func() {
			if served {
				j.Served = append(j.Served, *old)
			}
		}
		if minimum > 0 && strength.Bits < minimum {
			j.Short = append(j.Short, Shortfall{c.Source, strength, minimum, served})
			keep()
			continue
		}
		var weakenings []Weakening
		switch {
		case same:
		case old != nil:
			weakenings = compare(*old, c.Profile, c.compile)
		case doubt != "":
			weakenings = []Weakening{{Sentence: doubt}}
		}
		if len(weakenings) == 0 {
			j.Served = append(j.Served, c.Profile)
			continue
		}
		change := newChange(c.Source, old, c.Profile, s.weakened(c.Profile.Name), weakenings, served)
		if !change.Allows(c.Allow) {
			j.Withheld = append(j.Withheld, change)
			keep()
			continue
		}
		j.Allowed = append(j.Allowed, change)
		j.Served = append(j.Served, c.Profile)
		weakened = append(weakened, c.Profile.Name)
	}
	slices.SortFunc(j.Served, func(a, b profile.Profile) int { return strings.Compare(a.Name, b.Name) })
	j.After = s.after(j.Served, weakened)
	return j
}

// strengthOf returns the strength of a whole profile that is valid.
func strengthOf(p profile.Profile) profile.Strength {
	all := profile.StrengthOf(&p)
	if len(all) == 0 {
		return profile.Strength{Limit: "nothing that can be judged"}
	}
	return all[len(all)-1]
}

// MeetsMinimum reports whether a served profile may stay in service if profiles must have a
// strength of minimum bits. A minimum of 0 allows any.
func MeetsMinimum(served profile.Profile, minimum int) bool {
	return minimum == 0 || strengthServed(served).Bits >= minimum
}

// strengthServed returns the strength of a whole profile that was served, perhaps by an older
// version of the operator. It returns no strength if the profile is invalid in this version.
func strengthServed(p profile.Profile) profile.Strength {
	c, err := compiled(p)
	if err != nil {
		return profile.Strength{Limit: "nothing that can be judged"}
	}
	return c.Strength()
}
