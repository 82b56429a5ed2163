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

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// sectionNames are the fields of API.
var sectionNames = yamlfile.FieldNames(reflect.TypeFor[API]())

// The values that fields of a profile may have, in their canonical spelling. Upper and lower
// case do not matter, as in released brokers.
var (
	cryptoLibraries = []string{"native"}
)

// validator checks the values of a document.
type validator struct{ *yamlfile.Report }

func (v validator) document(doc *Document) {
	at := yamlfile.Whole()
	if doc.FormatVersion < 0 || doc.FormatVersion > newestFormatVersion {
		v.Add(at.Field("FormatVersion"), at, "found %d, expected a whole number from 0 to %d, the newest version this broker reads", doc.FormatVersion, newestFormatVersion)
	}
	v.settings(at.Field("Settings"), doc.Settings)
	v.kms(at.Field("KMS"), doc.KMS)
	first := map[nameAndSide]int{}
	unread := v.failedWithin("API")
	for i := range doc.Profiles {
		v.profile(yamlfile.Item(i), &doc.Profiles[i], unread[i])
		v.unique(yamlfile.Item(i).Field("Name"), doc.Profiles, i, first)
	}
	v.alone(doc.Profiles, first)
}

// nameAndSide identifies a profile of a file: no two profiles may have the same.
type nameAndSide struct {
	name    string
	rollout bool
}

// unique takes all profiles with the same name out of service, because the order in the file must
// not decide which of them is served. A profile with Rollout and a profile without may share a
// name.
func (v validator) unique(at yamlfile.Place, profiles []Profile, i int, first map[nameAndSide]int) {
	name := profiles[i].Name
	if name == "" {
		return
	}
	key := nameAndSide{name, profiles[i].Rollout != nil}
	before, twice := first[key]
	if !twice {
		first[key] = i
		return
	}
	other := fmt.Sprintf("at index %d", before)
	if !v.Ranked {
		other = fmt.Sprintf("on line %d", v.Positions[yamlfile.Item(before).Field("Name")].Line)
	}
	v.Add(at, at, "the name %s is taken by the profile %s; neither is served while both have it", yamlfile.Excerpt(name), other)
	v.Invalid[before], v.Invalid[i] = true, true
}

// profile checks a profile. unread reports whether the file has operations that could not be read.
func (v validator) profile(at yamlfile.Place, p *Profile, unread bool) {
	v.name(at.Field("Name"), at, p.Name)
	v.settings(at.Field("Settings"), p.Settings)
	v.kms(at.Field("KMS"), p.KMS)
	api := at.Field("API")
	if p.API == (API{}) && !v.anyPresent(api, sectionNames...) && !unread {
		v.Add(api, at, "offers no operation, expected at least one of %s", yamlfile.List(sectionNames))
	}
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			s.validate(v, api.Field(row.Name))
		}
	}
	v.callers(at.Field("Callers"), p.Callers)
	v.audit(at.Field("Audit"), p.Audit)
	v.deprecation(at.Field("Deprecation"), p)
	v.rollout(at.Field("Rollout"), p.Rollout)
}

// IsName reports whether a profile may have a name.
func IsName(name string) bool {
	return name != "" && len(name) <= MaxNameLength && printable(name) && strings.TrimSpace(name) == name
}

func (v validator) name(at, around yamlfile.Place, name string) {
	switch {
	case name == "":
		v.required(at, around, "a name of 1 to 64 bytes")
	case len(name) > MaxNameLength:
		v.Add(at, around, "the name has %d bytes, expected at most %d", len(name), MaxNameLength)
	case !printable(name):
		v.Add(at, around, "found %s, expected printable characters only", yamlfile.Excerpt(name))
	case strings.TrimSpace(name) != name:
		v.Add(at, around, "found %s, expected no space at the ends", yamlfile.Excerpt(name))
	}
}

func (v validator) settings(at yamlfile.Place, s *Settings) {
	if s != nil && (s.CryptoLibrary != "" || v.Present(at.Field("CryptoLibrary"))) {
		v.enum(at.Field("CryptoLibrary"), at, s.CryptoLibrary, cryptoLibraries)
	}
}

func (v validator) kms(at yamlfile.Place, k *KMS) {
	if k == nil {
		return
	}
	v.text(at.Field("Client"), k.Client, maxTextLength)
	// The text is not quoted, because it may be a credential in the wrong place.
	if file, isText := k.Config.(string); isText && file != "" && !isFileName(file) {
		v.Add(at.Field("Config"), at, "is not the name of a file, expected 1 to %d letters, digits, \"-\", \"_\" and \".\", the first one no \".\"", maxFileName)
	}
}

// maxFileName is the longest name, in bytes, of a file with the settings of a key manager.
const maxFileName = 253

// isFileName reports whether a text is a name that an entry of a Kubernetes Secret can have. A
// mounted Secret has the entries as files.
func isFileName(text string) bool {
	return len(text) <= maxFileName && text[0] != '.' && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

func (v validator) deprecation(at yamlfile.Place, p *Profile) {
	d := p.Deprecation
	if d == nil {
		return
	}
	v.text(at.Field("DeprecatedSince"), d.DeprecatedSince, maxTextLength)
	v.text(at.Field("RemoveAfter"), d.RemoveAfter, maxTextLength)
	v.text(at.Field("Reason"), d.Reason, maxTextLength)
	if d.ReplacedBy != "" {
		v.name(at.Field("ReplacedBy"), at, d.ReplacedBy)
		if d.ReplacedBy == p.Name {
			v.Add(at.Field("ReplacedBy"), at, "names the deprecated profile itself, expected another one")
		}
	}
}

// required reports a field that is missing or empty.
func (v validator) required(at, around yamlfile.Place, want string) {
	if v.Present(at) {
		v.Add(at, around, "is empty, expected %s", want)
		return
	}
	v.Add(at, around, "is missing, expected %s", want)
}

// enum checks that a value is one of a fixed list of names. Upper and lower case do not
// matter.
func (v validator) enum(at, around yamlfile.Place, found string, allowed []string) {
	v.oneOf(at, around, found, allowed, strings.EqualFold)
}

func (v validator) oneOf(at, around yamlfile.Place, found string, allowed []string, equal func(a, b string) bool) {
	want := yamlfile.List(allowed)
	if len(allowed) > 1 {
		want = "one of " + want
	}
	if found == "" {
		v.required(at, around, want)
		return
	}
	if !slices.ContainsFunc(allowed, func(a string) bool { return equal(a, found) }) {
		v.Add(at, around, "unknown value %s, expected %s%s", yamlfile.Excerpt(found), want, yamlfile.DidYouMean(found, allowed))
	}
}

// number checks that a value is one of a fixed list of sizes in bits.
func (v validator) number(at, around yamlfile.Place, found int, allowed []int, required bool) {
	names := make([]string, len(allowed))
	for i, n := range allowed {
		names[i] = fmt.Sprint(n)
	}
	want := "one of " + strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1] + " bits"
	switch {
	case v.Failed[at] || v.Failed[around]:
	case !v.Present(at) && found == 0:
		if required {
			v.Add(at, around, "is missing, expected %s", want)
		}
	case !slices.Contains(allowed, found):
		v.Add(at, around, "found %d, expected %s", found, want)
	}
}

// text checks that a free text is printable and has at most longest bytes.
func (v validator) text(at yamlfile.Place, found string, longest int) {
	switch {
	case len(found) > longest:
		v.Add(at, at, "the text has %d bytes, expected at most %d", len(found), longest)
	case !printable(found):
		v.Add(at, at, "found %s, expected printable characters only", yamlfile.Excerpt(found))
	}
}

// duration returns a Go duration. It reports false, and adds a problem, if the value is not
// a duration.
func (v validator) duration(at, around yamlfile.Place, found string) (time.Duration, bool) {
	const want = "a duration such as \"-1h\" or \"8760h\""
	if found == "" {
		v.required(at, around, want)
		return 0, false
	}
	d, err := time.ParseDuration(found)
	if err != nil {
		v.Add(at, around, "found %s, expected %s", yamlfile.Excerpt(found), want)
		return 0, false
	}
	return d, true
}

func (v validator) anyPresent(at yamlfile.Place, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return v.Present(at.Field(name)) })
}

// failedWithin returns the indices of the profiles whose field with this name has a problem in it.
func (v validator) failedWithin(name string) map[int]bool {
	found := map[int]bool{}
	for where := range v.Failed {
		if strings.HasPrefix(where.Path, name+".") {
			found[where.Profile] = true
		}
	}
	return found
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
