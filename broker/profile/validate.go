// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// operations are the fields of API.
var operations = fieldNames(reflect.TypeFor[API]())

// The values that fields of a profile may have, in their canonical spelling. They
// are accepted in any case, as released brokers do.
var (
	cryptoLibraries = []string{"native"}
	auditLevels     = []string{"none", "sampled", "sensitive", "all"}
)

// validator checks what the values of a document mean.
type validator struct{ *report }

func (v validator) document(doc *Document) {
	at := place{root, ""}
	if doc.FormatVersion < 0 || doc.FormatVersion > NewestFormatVersion {
		v.add(at.field("FormatVersion"), at, "found %d, expected a whole number from 0 to %d, the newest version this broker reads", doc.FormatVersion, NewestFormatVersion)
	}
	v.settings(at.field("Settings"), doc.Settings)
	v.kms(at.field("KMS"), doc.KMS)
	first := map[string]int{}
	for i := range doc.Profiles {
		v.profile(place{i, ""}, &doc.Profiles[i])
		v.unique(place{i, "Name"}, doc.Profiles, i, first)
	}
}

// unique takes every profile of an ambiguous name out of service: which of them
// was meant is not for the order in the file to decide.
func (v validator) unique(at place, profiles []Profile, i int, first map[string]int) {
	name := profiles[i].Name
	if name == "" {
		return
	}
	before, twice := first[name]
	if !twice {
		first[name] = i
		return
	}
	other := fmt.Sprintf("at index %d", before)
	if !v.ranked {
		other = fmt.Sprintf("on line %d", v.positions[place{before, "Name"}].line)
	}
	v.add(at, at, "the name %s is taken by the profile %s; neither is served while both have it", excerpt(name), other)
	v.invalid[before], v.invalid[i] = true, true
}

func (v validator) profile(at place, p *Profile) {
	v.name(at.field("Name"), at, p.Name)
	v.settings(at.field("Settings"), p.Settings)
	v.kms(at.field("KMS"), p.KMS)
	api := at.field("API")
	if p.API == (API{}) && !v.anyPresent(api, operations...) && !v.failedWithin(api) {
		v.add(api, at, "offers no operation, expected at least one of %s", list(operations))
	}
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			s.validate(v, api.field(row.Name))
		}
	}
	v.callers(at.field("Callers"), p.Callers)
	v.audit(at.field("Audit"), p.Audit)
	v.deprecation(at.field("Deprecation"), p)
}

func (v validator) name(at, around place, name string) {
	switch {
	case name == "":
		v.required(at, around, "a name of 1 to 64 bytes")
	case len(name) > MaxNameLength:
		v.add(at, around, "the name has %d bytes, expected at most %d", len(name), MaxNameLength)
	case !printable(name):
		v.add(at, around, "found %s, expected printable characters only", excerpt(name))
	case strings.TrimSpace(name) != name:
		v.add(at, around, "found %s, expected no space at the ends", excerpt(name))
	}
}

func (v validator) settings(at place, s *Settings) {
	if s != nil && (s.CryptoLibrary != "" || v.present(at.field("CryptoLibrary"))) {
		v.enum(at.field("CryptoLibrary"), at, s.CryptoLibrary, cryptoLibraries)
	}
}

func (v validator) kms(at place, k *KMS) {
	if k != nil {
		v.text(at.field("Client"), k.Client, maxTextLength)
	}
}

func (v validator) audit(at place, a *Audit) {
	if a == nil {
		return
	}
	v.enum(at.field("Level"), at, a.Level, auditLevels)
	if a.Required && strings.EqualFold(a.Level, "none") {
		v.add(at.field("Required"), at, "is true while Level is \"none\", so that no call could ever be recorded")
	}
}

func (v validator) deprecation(at place, p *Profile) {
	d := p.Deprecation
	if d == nil {
		return
	}
	v.text(at.field("DeprecatedSince"), d.DeprecatedSince, maxTextLength)
	v.text(at.field("RemoveAfter"), d.RemoveAfter, maxTextLength)
	v.text(at.field("Reason"), d.Reason, maxTextLength)
	if d.ReplacedBy != "" {
		v.name(at.field("ReplacedBy"), at, d.ReplacedBy)
		if d.ReplacedBy == p.Name {
			v.add(at.field("ReplacedBy"), at, "names the deprecated profile itself, expected another one")
		}
	}
}

// required reports a field that is missing or empty.
func (v validator) required(at, around place, want string) {
	if v.present(at) {
		v.add(at, around, "is empty, expected %s", want)
		return
	}
	v.add(at, around, "is missing, expected %s", want)
}

// enum checks one of a fixed list of names, in any case.
func (v validator) enum(at, around place, found string, allowed []string) {
	v.oneOf(at, around, found, allowed, strings.EqualFold)
}

func (v validator) oneOf(at, around place, found string, allowed []string, equal func(a, b string) bool) {
	want := list(allowed)
	if len(allowed) > 1 {
		want = "one of " + want
	}
	if found == "" {
		v.required(at, around, want)
		return
	}
	if !slices.ContainsFunc(allowed, func(a string) bool { return equal(a, found) }) {
		v.add(at, around, "unknown value %s, expected %s%s", excerpt(found), want, didYouMean(found, allowed))
	}
}

// number checks one of a fixed list of sizes in bits.
func (v validator) number(at, around place, found int, allowed []int, required bool) {
	names := make([]string, len(allowed))
	for i, n := range allowed {
		names[i] = fmt.Sprint(n)
	}
	want := "one of " + strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1] + " bits"
	switch {
	case v.failed[at] || v.failed[around]:
	case !v.present(at) && found == 0:
		if required {
			v.add(at, around, "is missing, expected %s", want)
		}
	case !slices.Contains(allowed, found):
		v.add(at, around, "found %d, expected %s", found, want)
	}
}

// text checks free text: printable and bounded.
func (v validator) text(at place, found string, longest int) {
	switch {
	case len(found) > longest:
		v.add(at, at, "the text has %d bytes, expected at most %d", len(found), longest)
	case !printable(found):
		v.add(at, at, "found %s, expected printable characters only", excerpt(found))
	}
}

// duration checks a Go duration and returns it; false after a problem.
func (v validator) duration(at, around place, found string) (time.Duration, bool) {
	const want = "a duration such as \"-1h\" or \"8760h\""
	if found == "" {
		v.required(at, around, want)
		return 0, false
	}
	d, err := time.ParseDuration(found)
	if err != nil {
		v.add(at, around, "found %s, expected %s", excerpt(found), want)
		return 0, false
	}
	return d, true
}

func (v validator) anyPresent(at place, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return v.present(at.field(name)) })
}

// failedWithin tells whether a problem was reported for a field of the map.
func (v validator) failedWithin(at place) bool {
	for where := range v.failed {
		if where.profile == at.profile && strings.HasPrefix(where.path, at.path+".") {
			return true
		}
	}
	return false
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
