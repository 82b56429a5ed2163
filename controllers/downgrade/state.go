// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// State has the profiles that a namespace serves and has served. The zero State belongs to a
// namespace that never had profiles. A State never changes.
type State struct {
	served map[string]profile.Profile
	// past has the removed profiles, or is nil.
	past *memory
}

// Read returns the State of a ConfigMap, from its profile file, which may be empty, and its
// annotations. If a set was rendered to the same file, the file need not be parsed. If Read
// returns an error, the State has the parts that could be read.
func Read(file string, annotations map[string]string, rendered render.Result) (State, error) {
	var s State
	var unreadable error
	if file == string(rendered.Data) {
		s.served = map[string]profile.Profile{}
		for _, part := range rendered.Parts {
			s.served[part.Profile.Name] = part.Profile
		}
	} else {
		s.served, unreadable = profiles("the set of profiles", file)
	}
	var err error
	s.past, err = readMemory(annotations)
	return s, errors.Join(unreadable, err)
}

// profiles returns the profiles of a file by name. The comparison handles problems of single
// profiles.
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
		if p.Rollout == nil { // not all brokers have served a profile that is being rolled out
			all[p.Name] = p
		}
	}
	return all, nil
}

// IsEmpty reports whether nothing has to be remembered in addition to the set.
func (s State) IsEmpty() bool { return s.past.isEmpty() }

// Serves reports whether exactly this profile is served under its name.
func (s State) Serves(p profile.Profile) bool {
	served, is := s.served[p.Name]
	return is && reflect.DeepEqual(served, p)
}

// ServedAs returns the profile that is served under a name, and reports whether there is one.
func (s State) ServedAs(name string) (profile.Profile, bool) {
	served, is := s.served[name]
	return served, is
}

// IsNew reports whether the namespace never had profiles.
func (s State) IsNew() bool { return len(s.served) == 0 && s.IsEmpty() }

// Lost returns the State of a namespace that may have served more profiles than are known. Any
// name may have been served.
func (s State) Lost() State {
	past := s.past.after(nil, nil, nil)
	past.lost = true
	return State{served: s.served, past: past}
}

// IsUnknown reports whether nothing is known of what the namespace serves.
func (s State) IsUnknown() bool { return s.past != nil && s.past.lost && len(s.served) == 0 }

// Annotations returns the annotations of a ConfigMap that holds this State. Equal States have
// equal annotations. Both keys are always present, with an empty value for nothing.
func (s State) Annotations() map[string]string {
	if s.past.isEmpty() {
		return map[string]string{v1alpha1.RemovedProfilesAnnotation: "", v1alpha1.ProfilesHistoryAnnotation: ""}
	}
	return maps.Clone(s.past.annotations())
}

// file renders profiles by name.
func file(all map[string]profile.Profile) []byte {
	doc := &profile.Document{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		doc.Profiles = append(doc.Profiles, all[name])
	}
	data, err := profile.Marshal(doc)
	if err != nil { // this only fails for values that no file and no resource can have
		panic("downgrade: " + err.Error())
	}
	return data
}

// before returns the last profile of a name, and whether it is still served. If there is none,
// doubt says why the new profile may replace another one nevertheless.
func (s State) before(new profile.Profile) (old *profile.Profile, served bool, doubt string) {
	if p, ok := s.served[new.Name]; ok {
		return &p, true, ""
	}
	if s.past == nil {
		return nil, false, ""
	}
	if p, ok := s.past.removed[new.Name]; ok {
		return &p, false, ""
	}
	return nil, false, s.past.doubt(new)
}

// weakened returns how often a name was allowed to become weaker.
func (s State) weakened(name string) int {
	if s.past == nil {
		return 0
	}
	return s.past.weakened[name]
}

// after returns the State in which these profiles are served, and these names were allowed to
// become weaker. It shares unchanged parts with the State before.
func (s State) after(served []profile.Profile, weakened []string) State {
	next := State{served: make(map[string]profile.Profile, len(served)), past: s.past}
	var back, gone []profile.Profile
	for _, p := range served {
		next.served[p.Name] = p
		if s.past.has(p.Name) {
			back = append(back, p)
		}
	}
	for name, p := range s.served {
		if _, still := next.served[name]; !still {
			gone = append(gone, p)
		}
	}
	if len(back)+len(gone)+len(weakened) > 0 {
		next.past = s.past.after(back, gone, weakened)
	}
	return next
}
