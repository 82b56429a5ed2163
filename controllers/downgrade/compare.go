// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Weakening is something that a new profile allows and the old profile did not allow.
type Weakening struct {
	// Field is its path in the profile, spelt as in a profile file, such as
	// "API.HashData.HashAlg". It is empty if the profile as a whole is meant.
	Field string
	// Old and New are the values as text.
	Old, New string
	// Sentence says what becomes weaker, without the field and without a full stop.
	Sentence string
}

// String returns the sentence with the field as resources spell it:
// "spec.api.hashData.hashAlg: …".
func (w Weakening) String() string { return render.FieldPath(w.Field) + ": " + w.Sentence }

// compare returns why the new profile is weaker than the old one: at most one Weakening for each
// field, in the order of the fields. It returns none if the new profile is as strong. Both have
// the same name. compileAfter compiles the new profile. A caller compares it with several old
// ones, and compiles it once.
//
// The new profile is not weaker if it offers less, restricts more, is deprecated or
// is not deprecated any more, has another format of signatures, or has another
// algorithm of the same strength. If one of the two is invalid, they cannot be
// compared, and any difference is weaker.
func compare(before, after profile.Profile, compileAfter func() (*profile.Compiled, error)) []Weakening {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	old, err := compiled(before)
	if err != nil {
		return incomparable(before, after, fmt.Sprintf("the new profile can't be compared with the profile that was served, because this version finds that one invalid: %s", err))
	}
	changed, err := compileAfter()
	if err != nil {
		return incomparable(before, after, fmt.Sprintf("the profile can't be compared, since it is invalid: %s", err))
	}
	c := &comparison{}
	c.settings(before.Settings, after.Settings)
	c.keyManager(before.KMS, after.KMS)
	c.offered(&before.API, &after.API)
	c.sections(side{&before.API, old}, side{&after.API, changed})
	c.verdicts(old.Assessments(), changed.Assessments())
	c.callers(before.Callers, after.Callers)
	c.audit(before.Audit, after.Audit)
	return c.found
}

// incomparable returns the weakenings of a profile that cannot be compared. Any difference counts
// as weaker.
func incomparable(before, after profile.Profile, why string) []Weakening {
	if bytes.Equal(Canonical(before), Canonical(after)) {
		return nil
	}
	return []Weakening{{Sentence: why}}
}

// Canonical returns the encoding by which this package compares profiles: equal
// profiles have equal bytes.
func Canonical(p profile.Profile) []byte {
	data, err := profile.Marshal(&profile.Document{Profiles: []profile.Profile{p}})
	if err != nil { // this only fails for values that no file and no resource can have
		panic("downgrade: " + err.Error())
	}
	return data
}

func compiled(p profile.Profile) (*profile.Compiled, error) {
	set, problems := profile.CompileDocument(&profile.Document{Profiles: []profile.Profile{p}})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	c, _ := set.Lookup(p.Name)
	return c, nil
}

// comparison collects weakenings.
type comparison struct{ found []Weakening }

func (c *comparison) add(field, before, after, sentence string, args ...any) {
	c.found = append(c.found, Weakening{Field: field, Old: before, New: after, Sentence: fmt.Sprintf(sentence, args...)})
}

// says reports whether there is a weakening inside this field.
func (c *comparison) says(field string) bool {
	return slices.ContainsFunc(c.found, func(w Weakening) bool {
		return w.Field == field || strings.HasPrefix(w.Field, field+".")
	})
}

// side is the old or the new profile.
type side struct {
	*profile.API
	compiled *profile.Compiled
}

// comparer compares a section that both profiles have.
type comparer func(c *comparison, before, after side)

// comparers are the comparers by the names of the sections in the table of operations. A
// test fails for a section without one.
var comparers = map[string]comparer{}

// compares adds the comparer of a section. The file of each comparer, compare_….go, calls it
// when the program starts.
func compares(section string, by comparer) comparer {
	comparers[section] = by
	return by
}

// offered finds operations that the old profile refused.
func (c *comparison) offered(before, after *profile.API) {
	for _, row := range profile.Sections() {
		if !row.Offered(after) || row.Offered(before) {
			continue
		}
		verb := "is"
		if len(row.Operations) > 1 {
			verb = "are"
		}
		c.add("API."+row.Name, "not offered", "offered", "%s %s offered, which the profile refused", inWords(row.Names()), verb)
	}
}

// sections compares the sections that both profiles have.
func (c *comparison) sections(before, after side) {
	for _, row := range profile.Sections() {
		if row.Offered(before.API) && row.Offered(after.API) {
			comparers[row.Name](c, before, after)
		}
	}
}

// verdicts compares the strength and the FIPS verdict of each operation. It does not repeat a
// lower strength that the weakening of a field explains.
func (c *comparison) verdicts(before, after []profile.Assessment) {
	type loss struct{ section, reason string }
	unapproved := map[loss][]string{}
	var order []loss
	for _, new := range after {
		i := slices.IndexFunc(before, func(a profile.Assessment) bool { return a.Operation == new.Operation })
		if i < 0 {
			continue
		}
		old, section := before[i], profile.Section(new.Operation)
		if new.Strength.Bits < old.Strength.Bits && !c.says(section) {
			c.add(section, bits(old.Strength), bits(new.Strength), "%s has a strength of %s by %s; it had %s by %s",
				new.Operation, bits(new.Strength), new.Strength.Limit, bits(old.Strength), old.Strength.Limit)
		}
		if old.FIPS.Approved() && !new.FIPS.Approved() {
			at := loss{section, new.FIPS.Reason}
			if unapproved[at] == nil {
				order = append(order, at)
			}
			unapproved[at] = append(unapproved[at], new.Operation)
		}
	}
	for _, at := range order {
		verb := "is"
		if len(unapproved[at]) > 1 {
			verb = "are"
		}
		c.add(at.section, "approved", "not approved", "%s %s no longer approved by FIPS 140-3: %s", inWords(unapproved[at]), verb, at.reason)
	}
}

// inWords joins names to a list in a sentence.
func inWords(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func bits(s profile.Strength) string { return fmt.Sprintf("%d bits", s.Bits) }
