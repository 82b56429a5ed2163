// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// maxMemory is the maximum number of bytes that the two annotations take together. Kubernetes
// allows 256 KiB for all annotations of an object.
const maxMemory = 192 << 10

// memory has the removed profiles of a namespace, which it has served and does not serve any
// more. It never changes. A nil memory has none.
type memory struct {
	removed map[string]profile.Profile
	// forgotten are the marks of removed profiles that were too large to store completely.
	forgotten marks
	// unmarked has the names of removed profiles for which there was not even room for a mark.
	unmarked filter
	// weakened is how often each name was allowed to become weaker.
	weakened map[string]int
	// forgetful reports whether an operator of a version without the filter had no room for a
	// mark. Then a name that is neither served nor remembered may have been served.
	forgetful bool
	// lost reports whether it was once not known what the namespace had served. The consequence
	// is the same as of forgetful.
	lost bool

	rendered sync.Once
	texts    map[string]string
}

// withoutEnd removes the deprecation of a profile, which a comparison ignores.
func withoutEnd(p profile.Profile) profile.Profile {
	p.Deprecation = nil
	return p
}

// history is the JSON of ProfilesHistoryAnnotation.
type history struct {
	Weakened map[string]int `json:"weakened,omitempty"`
	// Forgotten are the pairs of marks of profiles, one after the other.
	Forgotten []byte `json:"forgotten,omitempty"`
	// Forgetful is true if some names are not even marked. An operator that does not
	// know Unmarked then takes every unknown name for one of them.
	Forgetful bool   `json:"forgetful,omitempty"`
	Unmarked  filter `json:"unmarked,omitempty"`
	Lost      bool   `json:"lost,omitempty"`
}

// readMemory reads the annotations of a ConfigMap. If it returns an error, the memory has the
// parts that could be read.
func readMemory(annotations map[string]string) (*memory, error) {
	removed, text := annotations[v1alpha1.RemovedProfilesAnnotation], annotations[v1alpha1.ProfilesHistoryAnnotation]
	if removed == "" && text == "" {
		return nil, nil
	}
	m := &memory{}
	var unreadable, err error
	m.removed, unreadable = profiles("the annotation "+v1alpha1.RemovedProfilesAnnotation, removed)
	var h history
	if text != "" {
		err = json.Unmarshal([]byte(text), &h)
	}
	if err == nil {
		m.forgotten, err = readMarks(h.Forgotten)
	}
	if size := len(h.Unmarked); err == nil && size != 0 && size != filterSize {
		err = fmt.Errorf("unmarked has %d bytes, expected %d", size, filterSize)
	}
	if err != nil {
		return m, errors.Join(unreadable, fmt.Errorf("the annotation %s can't be read: %w", v1alpha1.ProfilesHistoryAnnotation, err))
	}
	m.weakened, m.unmarked, m.lost = h.Weakened, h.Unmarked, h.Lost
	m.forgetful = h.Forgetful && m.unmarked == nil
	return m, unreadable
}

func (m *memory) isEmpty() bool {
	return m == nil || len(m.removed)+len(m.forgotten.order)+len(m.weakened) == 0 && m.unmarked == nil && !m.forgetful && !m.lost
}

// has reports whether the memory has a removed profile of this name, or the mark of one.
func (m *memory) has(name string) bool {
	if m == nil {
		return false
	}
	_, removed := m.removed[name]
	_, forgotten := m.forgotten.contents[markOf(name)]
	return removed || forgotten
}

// doubt returns why a profile may replace another one although no profile of its name is
// remembered. It is empty if that cannot be.
func (m *memory) doubt(new profile.Profile) string {
	content, forgotten := m.forgotten.contents[markOf(new.Name)]
	switch {
	case forgotten && content == markContent(new):
		return ""
	case forgotten:
		return "a profile of this name was served before, and it is only remembered that this is another one, because too many were removed from this namespace"
	case m.lost:
		return "what this namespace served before is not known, because its ConfigMap " + v1alpha1.ProfilesConfigMap + " was changed, deleted or put back while no operator ran"
	case m.forgetful, m.unmarked.has(markOf(new.Name)):
		return "a profile of this name may have been served before and is not remembered, because too many were removed from this namespace"
	}
	return ""
}

// after returns the memory after some profiles have come back into service, some have gone out of
// service, and some names were allowed to become weaker.
func (m *memory) after(back, gone []profile.Profile, weakened []string) *memory {
	if m == nil {
		m = &memory{}
	}
	next := &memory{
		removed: map[string]profile.Profile{}, forgotten: m.forgotten.clone(), unmarked: m.unmarked,
		weakened: map[string]int{}, forgetful: m.forgetful, lost: m.lost,
	}
	maps.Copy(next.removed, m.removed)
	maps.Copy(next.weakened, m.weakened)
	for _, p := range back {
		delete(next.removed, p.Name)
	}
	next.forgotten.remove(back)
	for _, p := range gone {
		next.removed[p.Name] = withoutEnd(p)
	}
	for _, name := range weakened {
		next.weakened[name]++
	}
	next.fit()
	return next
}

// fit makes the memory small enough. It replaces the largest removed profiles by their marks, and
// then the oldest marks by their names in the filter. It computes each size once.
func (m *memory) fit() {
	total := 0
	for _, text := range m.write() {
		total += len(text)
	}
	if total <= maxMemory {
		return
	}
	names, sizes := slices.Collect(maps.Keys(m.removed)), map[string]int{}
	total = m.historySize()
	for _, name := range names {
		// Beside a profile that needs the map form, each line is indented.
		written := Canonical(m.removed[name])
		sizes[name] = len(written) + 2*bytes.Count(written, []byte("\n"))
		total += sizes[name]
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], cmp.Compare(a, b)) })
	for _, name := range names {
		if total <= maxMemory {
			return
		}
		m.forgotten.add(markOf(name), markContent(m.removed[name]))
		delete(m.removed, name)
		total += base64Size(markSize) - sizes[name]
	}
	if total <= maxMemory {
		return
	}
	if m.unmarked == nil && !m.forgetful {
		total += base64Size(filterSize)
	}
	var unmarked []nameMark
	for total > maxMemory && len(m.forgotten.order) > 0 {
		unmarked = append(unmarked, m.forgotten.oldest())
		total -= markSize // or a little more
	}
	if len(unmarked) > 0 && !m.forgetful {
		m.unmarked = m.unmarked.with(unmarked)
	}
}

// historySize returns an upper bound of the size of the history in bytes.
func (m *memory) historySize() int {
	const form = 256 // names of fields, and the header of a profile file
	size := form + base64Size(markSize*len(m.forgotten.order)) + base64Size(len(m.unmarked))
	for name := range m.weakened {
		size += 6*len(name) + 16 // each byte may be escaped
	}
	return size
}

func base64Size(bytes int) int { return (bytes + 2) / 3 * 4 }

// annotations returns the annotations of a ConfigMap with this memory, rendered once.
func (m *memory) annotations() map[string]string {
	m.rendered.Do(func() { m.texts = m.write() })
	return m.texts
}

func (m *memory) write() map[string]string {
	annotations := map[string]string{v1alpha1.RemovedProfilesAnnotation: "", v1alpha1.ProfilesHistoryAnnotation: ""}
	if len(m.removed) > 0 {
		annotations[v1alpha1.RemovedProfilesAnnotation] = string(file(m.removed))
	}
	if len(m.weakened)+len(m.forgotten.order) > 0 || m.unmarked != nil || m.forgetful || m.lost {
		h := history{
			Weakened: m.weakened, Forgotten: m.forgotten.write(),
			Forgetful: m.forgetful || m.unmarked != nil, Unmarked: m.unmarked, Lost: m.lost,
		}
		data, err := json.Marshal(h)
		if err != nil {
			panic("downgrade: " + err.Error()) // names, numbers and bytes
		}
		annotations[v1alpha1.ProfilesHistoryAnnotation] = string(data)
	}
	return annotations
}
