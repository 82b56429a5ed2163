// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Excerpt is the part of a ConfigMap about some profile names. Equal excerpts have equal States.
// So each namespace costs only the search for the names, and an excerpt that many namespaces
// share is read once.
type Excerpt struct{ served, removed, history string }

// Finder finds some profile names in ConfigMaps.
type Finder struct {
	// begins are the beginnings of the profiles of these names in a file.
	begins []string
}

// NewFinder returns a Finder of these names.
func NewFinder(names ...string) Finder {
	var f Finder
	for _, name := range names {
		if written, err := yaml.Marshal(name); err == nil {
			f.begins = append(f.begins, "- Name: "+string(written))
		}
	}
	return f
}

// Cut finds the names in a profile file and the annotations beside it. If the file does not have
// the form in which the operator writes it, the excerpt is the whole file.
func (f Finder) Cut(file string, annotations map[string]string) Excerpt {
	return Excerpt{
		served:  f.cut(file),
		removed: f.cut(annotations[v1alpha1.RemovedProfilesAnnotation]),
		history: annotations[v1alpha1.ProfilesHistoryAnnotation],
	}
}

// Read returns the State of these names.
func (e Excerpt) Read() (State, error) {
	return Read(e.served, map[string]string{
		v1alpha1.RemovedProfilesAnnotation: e.removed, v1alpha1.ProfilesHistoryAnnotation: e.history,
	}, render.Result{})
}

// head matches the beginning of a profile file up to the first profile, in both forms, and the
// indentation of profiles.
var head = regexp.MustCompile(`^(?:(?:FormatVersion: \d+\n)?Profiles:\n)?( *)- Name: `)

// cut returns the profiles with these names from a profile file, in the order of the file. The
// result is empty if the file has none of them.
func (f Finder) cut(file string) string {
	found := head.FindStringSubmatchIndex(file)
	if found == nil {
		return file
	}
	header, indent, profiles := file[:found[2]], file[found[2]:found[3]], file[found[2]:]
	kept := ""
	for _, begin := range f.begins {
		kept += find(profiles, indent, begin)
	}
	if kept == "" {
		return ""
	}
	return header + kept
}

// find returns the text of one profile in a list. It is empty if the list does not have the
// profile. The fields of a profile are indented more than the list.
func find(profiles, indent, begin string) string {
	begin = indent + begin
	at := 0
	if !strings.HasPrefix(profiles, begin) {
		if at = strings.Index(profiles, "\n"+begin) + 1; at == 0 {
			return ""
		}
	}
	end := strings.Index(profiles[at+1:], "\n"+indent+"- ")
	if end < 0 {
		return profiles[at:]
	}
	return profiles[at : at+1+end+1]
}
