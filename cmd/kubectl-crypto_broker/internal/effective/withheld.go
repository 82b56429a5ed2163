// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// Change is a change that the guard withholds, and that is the same in several namespaces.
type Change struct {
	downgrade.Change
	// Namespaces are the namespaces in which it is withheld.
	Namespaces []string
	// Wanted is the withheld profile.
	Wanted profile.Profile
}

// Changes returns the changes that the guard withholds in these namespaces, each once.
func Changes(sets []*Set) (all []Change) {
	index := map[string]int{}
	for _, s := range sets {
		for _, withheld := range s.Judgement.Withheld {
			i, known := index[withheld.Digest] // the digest covers the object, too
			if !known {
				i = len(all)
				index[withheld.Digest] = i
				all = append(all, Change{Change: withheld, Wanted: s.wanted(withheld.Profile)})
			}
			all[i].Namespaces = append(all[i].Namespaces, s.Namespace.Name)
		}
	}
	return all
}

// wanted returns the profile with a name as the objects describe it.
func (s *Set) wanted(name string) profile.Profile {
	for _, part := range s.Rendered.Parts {
		if part.Profile.Name == name {
			return part.Profile
		}
	}
	return profile.Profile{Name: name}
}

// Has reports whether an object is for one of the namespaces.
func Has(sets []*Set, kind, name string) bool {
	for _, s := range sets {
		if kind == downgrade.KindCluster {
			for i := range s.Cluster {
				if s.Cluster[i].Name == name {
					return true
				}
			}
			continue
		}
		for i := range s.Namespaced {
			if s.Namespaced[i].Name == name {
				return true
			}
		}
	}
	return false
}

// IsServed reports whether the namespace serves the wanted profile of the change. A namespace
// without a baseline serves nothing until all of its profiles are allowed.
func (s *Set) IsServed(c Change) bool { return s.Served.Serves(c.Wanted) }

// IsRollingOut reports whether the change reaches brokers of the namespace step by step.
func (s *Set) IsRollingOut(c Change) bool {
	return slices.ContainsFunc(s.Rows(), func(r Row) bool { return r.Profile == c.Profile && r.State == StateRollingOut })
}
