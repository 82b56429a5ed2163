// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// maxChanges is the maximum number of different changes that a response lists.
const maxChanges = 5

// placed is a change and the namespaces in which it happens.
type placed struct {
	downgrade.Change
	namespaces []string
}

// effect has the changes by which a request makes profiles weaker: changes for which the request
// is refused, allowed changes, and admitted changes that the operator withholds.
type effect struct {
	withheld, allowed, tolerated []placed
	// uncompared is the number of namespaces that were not compared, because enough other
	// namespaces refuse the request.
	uncompared int
}

// where names the namespaces of a change. If there are many, it names the first ones.
func (p placed) where() string {
	if more := len(p.namespaces) - 1; more > 0 {
		return fmt.Sprintf("of namespace %q and %d more", p.namespaces[0], more)
	}
	return fmt.Sprintf("of namespace %q", p.namespaces[0])
}

// was describes the profile before the change, for a sentence.
func (p placed) was() string {
	switch {
	case p.Unknown:
		return "than what may have been served under this name before"
	case !p.Served:
		return "than what was served under this name before"
	}
	return "than what is served"
}

// refusal returns the sentences about the changes to weaker profiles and how to allow them.
// subject is the object of the request. created is true if the object does not exist yet, so that
// nobody can annotate it first.
func (e effect) refusal(subject downgrade.Source, created bool) string {
	var sentences []string
	bySource := map[downgrade.Source][]downgrade.Change{}
	for i, c := range e.withheld {
		bySource[c.Source] = append(bySource[c.Source], c.Change)
		if i < maxChanges {
			what := fmt.Sprintf("this makes the profile %q %s weaker", c.Profile, c.where())
			if c.Source != subject {
				what = fmt.Sprintf("this puts %s into service as the profile %q %s, which is weaker", c.Source, c.Profile, c.where())
			}
			sentences = append(sentences, fmt.Sprintf("%s %s: %s", what, c.was(), strings.Join(c.Sentences(), " ")))
		}
	}
	if more := len(e.withheld) - maxChanges; more > 0 {
		sentences = append(sentences, fmt.Sprintf("And %d more changes make profiles weaker.", more))
	}
	if e.uncompared > 0 {
		sentences = append(sentences, fmt.Sprintf("%d namespaces were not compared: there may be more once these changes are allowed.", e.uncompared))
	}
	sources := slices.SortedFunc(maps.Keys(bySource), func(a, b downgrade.Source) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	for i, source := range sources {
		if i == maxChanges {
			break
		}
		if created && source == subject {
			key, digests, _ := strings.Cut(downgrade.Annotation(bySource[source]...), "=")
			sentences = append(sentences, fmt.Sprintf("If that is intended, somebody with the verb %q on %s allows exactly this change by creating it with the annotation %s: %s", downgrade.Verb, source, key, digests))
			continue
		}
		sentences = append(sentences, fmt.Sprintf("If that is intended, somebody with the verb %q on %s allows exactly this change by the following command; repeat the request then: %s", downgrade.Verb, source, downgrade.Command(bySource[source]...)))
	}
	return strings.Join(sentences, " ")
}

// warnings returns sentences about allowed changes to weaker profiles, and about namespaces that
// do not serve the admitted profile.
func (e effect) warnings() []string {
	var warnings []string
	for i, c := range e.allowed {
		if i == maxChanges {
			warnings = append(warnings, fmt.Sprintf("and %d more changes make profiles weaker. Somebody allowed this", len(e.allowed)-i))
			break
		}
		for _, sentence := range c.Sentences() {
			warnings = append(warnings, fmt.Sprintf("the profile %q %s becomes weaker. Somebody allowed this: %s", c.Profile, c.where(), sentence))
		}
	}
	for i, c := range e.tolerated {
		if i == maxChanges {
			return append(warnings, fmt.Sprintf("and in %d more ways; the condition DowngradeWithheld says how to allow them", len(e.tolerated)-i))
		}
		warnings = append(warnings, fmt.Sprintf("the profile %q %s is withheld, because it is weaker %s: %s", c.Profile, c.where(), c.was(), strings.Join(c.Sentences(), " ")))
	}
	return warnings
}
