// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Excerpt is what a ConfigMap says of some profile names. Equal excerpts have equal
// States. So a namespace costs the search for the names, and what many namespaces have
// in common is read once.
type Excerpt struct{ served, removed, history string }

// Finder finds some names in what ConfigMaps say.
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

// Cut finds the names in a profile file and the annotations beside it. A file that is not
// written as the operator writes it is taken as a whole.
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

// head is what profile files of both forms begin with, up to the first profile:
// nothing, or the fields of the map form; and by how much profiles are indented.
var head = regexp.MustCompile(`^(?:(?:FormatVersion: \d+\n)?Profiles:\n)?( *)- Name: `)

// cut leaves of a profile file the profiles of these names, in their order; nothing
// where there is none of them.
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

// find returns the text of one profile in a list, empty if the list does not have it. The
// fields of a profile are indented by more than the list.
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
