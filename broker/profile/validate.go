// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// sectionNames are the fields of API.
var sectionNames = yamlfile.FieldNames(reflect.TypeFor[API]())

// cryptoLibraries are the values of Settings.CryptoLibrary.
var cryptoLibraries = []string{"native"}

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
	if p.API == (API{}) && !v.AnyPresent(api, sectionNames...) && !unread {
		v.Add(api, at, "offers no operation, expected at least one of %s", yamlfile.List(sectionNames))
	}
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			s.validate(v, api.Field(row.Name))
		}
	}
	p.Callers.Check(v.Report, at.Field("Callers"))
	v.audit(at.Field("Audit"), p.Audit)
	v.deprecation(at.Field("Deprecation"), p)
	v.rollout(at.Field("Rollout"), p.Rollout)
}

// IsName reports whether a profile may have a name.
func IsName(name string) bool {
	return name != "" && len(name) <= MaxNameLength && yamlfile.Printable(name) && strings.TrimSpace(name) == name
}

func (v validator) name(at, around yamlfile.Place, name string) {
	switch {
	case name == "":
		v.Required(at, around, "a name of 1 to 64 bytes")
	case len(name) > MaxNameLength:
		v.Add(at, around, "the name has %d bytes, expected at most %d", len(name), MaxNameLength)
	case !yamlfile.Printable(name):
		v.Add(at, around, "found %s, expected printable characters only", yamlfile.Excerpt(name))
	case strings.TrimSpace(name) != name:
		v.Add(at, around, "found %s, expected no space at the ends", yamlfile.Excerpt(name))
	}
}

func (v validator) settings(at yamlfile.Place, s *Settings) {
	if s != nil && (s.CryptoLibrary != "" || v.Present(at.Field("CryptoLibrary"))) {
		v.Enum(at.Field("CryptoLibrary"), at, s.CryptoLibrary, cryptoLibraries)
	}
}

func (v validator) kms(at yamlfile.Place, k *KMS) {
	if k == nil {
		return
	}
	v.Text(at.Field("Client"), k.Client, maxTextLength)
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
	v.Text(at.Field("DeprecatedSince"), d.DeprecatedSince, maxTextLength)
	v.Text(at.Field("RemoveAfter"), d.RemoveAfter, maxTextLength)
	v.Text(at.Field("Reason"), d.Reason, maxTextLength)
	if d.ReplacedBy != "" {
		v.name(at.Field("ReplacedBy"), at, d.ReplacedBy)
		if d.ReplacedBy == p.Name {
			v.Add(at.Field("ReplacedBy"), at, "names the deprecated profile itself, expected another one")
		}
	}
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
