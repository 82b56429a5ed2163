// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxMemory is how many bytes the two annotations take together. Kubernetes allows
// 256 KiB for all annotations of an object.
const maxMemory = 192 << 10

// State is what a namespace has served. The zero State is that of a namespace
// that never had profiles. A State never changes.
type State struct {
	served   map[string]profile.Profile
	removed  map[string]profile.Profile
	weakened map[string]int
	// forgetful is true once a removed profile found no room. From then on a name
	// that is neither served nor remembered may have been served.
	forgetful bool
}

// history is the JSON of ProfilesHistoryAnnotation.
type history struct {
	Weakened  map[string]int `json:"weakened,omitempty"`
	Forgetful bool           `json:"forgetful,omitempty"`
}

// Read returns the State that a ConfigMap holds, from its profile file, empty
// where there is none, and its annotations. A set that was rendered to the same
// file saves reading it. Beside an error the State has what could be read.
func Read(file string, annotations map[string]string, rendered render.Result) (State, error) {
	var s State
	var errs []error
	if file == string(rendered.Data) {
		s.served = map[string]profile.Profile{}
		for _, part := range rendered.Parts {
			s.served[part.Profile.Name] = part.Profile
		}
	} else {
		var err error
		s.served, err = profiles("the set of profiles", file)
		errs = append(errs, err)
	}
	var err error
	s.removed, err = profiles("the annotation "+v1alpha1.RemovedProfilesAnnotation, annotations[v1alpha1.RemovedProfilesAnnotation])
	errs = append(errs, err)
	var h history
	if text := annotations[v1alpha1.ProfilesHistoryAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			errs = append(errs, fmt.Errorf("the annotation %s can't be read: %w", v1alpha1.ProfilesHistoryAnnotation, err))
		}
	}
	s.weakened, s.forgetful = h.Weakened, h.Forgetful
	return s, errors.Join(errs...)
}

// profiles reads a profile file by name. What is wrong with one profile is left
// to the comparison.
func profiles(what, file string) (map[string]profile.Profile, error) {
	all := map[string]profile.Profile{}
	if file == "" { // no file at all
		return all, nil
	}
	doc, problems := profile.Parse(profile.FileName, []byte(file))
	if doc == nil {
		return all, fmt.Errorf("%s can't be read: %w", what, problems.Err())
	}
	for _, p := range doc.Profiles {
		all[p.Name] = p
	}
	return all, nil
}

// IsEmpty tells that there is nothing that has to be remembered beside the set.
func (s State) IsEmpty() bool { return len(s.removed)+len(s.weakened) == 0 && !s.forgetful }

// Annotations are those of a ConfigMap that holds this State. The same State has
// always the same; there are both keys, with an empty value for nothing.
func (s State) Annotations() map[string]string {
	annotations := map[string]string{v1alpha1.RemovedProfilesAnnotation: "", v1alpha1.ProfilesHistoryAnnotation: ""}
	if len(s.removed) > 0 {
		annotations[v1alpha1.RemovedProfilesAnnotation] = string(file(s.removed))
	}
	if len(s.weakened) > 0 || s.forgetful {
		data, err := json.Marshal(history{Weakened: s.weakened, Forgetful: s.forgetful})
		if err != nil {
			panic("downgrade: " + err.Error()) // names and numbers
		}
		annotations[v1alpha1.ProfilesHistoryAnnotation] = string(data)
	}
	return annotations
}

// file renders profiles by name.
func file(all map[string]profile.Profile) []byte {
	doc := &profile.Document{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		doc.Profiles = append(doc.Profiles, all[name])
	}
	data, err := profile.Marshal(doc)
	if err != nil { // only of values that no file and no resource can hold
		panic("downgrade: " + err.Error())
	}
	return data
}

// before returns what a name served last, and whether it still does. known is
// false for a name that may have been served and is not remembered.
func (s State) before(name string) (old *profile.Profile, served, known bool) {
	if p, ok := s.served[name]; ok {
		return &p, true, true
	}
	if p, ok := s.removed[name]; ok {
		return &p, false, true
	}
	return nil, false, !s.forgetful
}

// after is the State once these profiles are served, and these names were allowed
// to become weaker.
func (s State) after(served []profile.Profile, weakened []string) State {
	next := State{
		served:    make(map[string]profile.Profile, len(served)),
		removed:   maps.Clone(s.removed),
		weakened:  maps.Clone(s.weakened),
		forgetful: s.forgetful,
	}
	if next.removed == nil {
		next.removed = map[string]profile.Profile{}
	}
	for _, p := range served {
		next.served[p.Name] = p
		delete(next.removed, p.Name)
	}
	for name, p := range s.served {
		if _, still := next.served[name]; !still {
			p.Deprecation = nil // never makes a difference
			next.removed[name] = p
		}
	}
	for _, name := range weakened {
		if next.weakened == nil {
			next.weakened = map[string]int{}
		}
		next.weakened[name]++
	}
	next.fit()
	return next
}

// fit forgets removed profiles for which there is no room, the largest first.
func (s *State) fit() {
	size := func() int {
		total := 0
		for _, value := range s.Annotations() {
			total += len(value)
		}
		return total
	}
	if size() <= maxMemory {
		return
	}
	s.forgetful = true
	names := slices.Collect(maps.Keys(s.removed))
	sizes := map[string]int{}
	for _, name := range names {
		sizes[name] = len(Canonical(s.removed[name]))
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], cmp.Compare(a, b)) })
	for _, name := range names {
		delete(s.removed, name)
		if size() <= maxMemory {
			return
		}
	}
}
