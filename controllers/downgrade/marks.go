// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// nameMark and contentMark stand for a removed profile: the beginnings of the SHA-256 of its name
// and of its encoding. Two names with the same mark count as one name. The only effect is that a
// profile may be withheld without need.
type (
	nameMark    [8]byte
	contentMark [24]byte
)

// markSize is the size of the two marks of a profile in bytes.
const markSize = len(nameMark{}) + len(contentMark{})

func markOf(name string) nameMark {
	sum := sha256.Sum256([]byte(name))
	return nameMark(sum[:len(nameMark{})])
}

func markContent(p profile.Profile) contentMark {
	sum := sha256.Sum256(Canonical(withoutEnd(p)))
	return contentMark(sum[:len(contentMark{})])
}

// marks are the marks of removed profiles.
type marks struct {
	contents map[nameMark]contentMark
	// order has the names in the order in which they were added.
	order []nameMark
}

// readMarks reads pairs of marks, the oldest first.
func readMarks(data []byte) (m marks, err error) {
	if len(data)%markSize != 0 {
		return m, fmt.Errorf("forgotten has %d bytes, expected %d for each profile", len(data), markSize)
	}
	m.contents = make(map[nameMark]contentMark, len(data)/markSize)
	for pair := range slices.Chunk(data, markSize) {
		m.add(nameMark(pair), contentMark(pair[len(nameMark{}):]))
	}
	return m, nil
}

func (m *marks) write() (data []byte) {
	for _, name := range m.order {
		content := m.contents[name]
		data = append(append(data, name[:]...), content[:]...)
	}
	return data
}

func (m *marks) clone() marks {
	contents := maps.Clone(m.contents)
	if contents == nil {
		contents = map[nameMark]contentMark{}
	}
	return marks{contents, slices.Clone(m.order)}
}

func (m *marks) add(name nameMark, content contentMark) {
	if _, has := m.contents[name]; !has {
		m.order = append(m.order, name)
	}
	m.contents[name] = content
}

// remove removes the marks of these profiles.
func (m *marks) remove(profiles []profile.Profile) {
	for _, p := range profiles {
		delete(m.contents, markOf(p.Name))
	}
	m.order = slices.DeleteFunc(m.order, func(name nameMark) bool {
		_, has := m.contents[name]
		return !has
	})
}

// oldest removes the oldest of the marks, and returns its name.
func (m *marks) oldest() nameMark {
	name := m.order[0]
	m.order = m.order[1:]
	delete(m.contents, name)
	return name
}

const (
	// filterSize is the size of a filter in bytes.
	filterSize = 32 << 10
	// filterBits is the number of bits of a filter that each name sets.
	filterBits = 4
)

// filter is a Bloom filter with the names of removed profiles. It is nil if it has no name. With
// 10,000 names it also matches 4 of 10,000 other names, and with 50,000 names it matches 810.
type filter []byte

// with returns a filter with these names added.
func (f filter) with(names []nameMark) filter {
	next := slices.Clone(f)
	if next == nil {
		next = make(filter, filterSize)
	}
	for _, name := range names {
		for bit := range name.bits() {
			next[bit/8] |= 1 << (bit % 8)
		}
	}
	return next
}

func (f filter) has(name nameMark) bool {
	if f == nil {
		return false
	}
	for bit := range name.bits() {
		if f[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// bits are the numbers of the bits that a name sets in a filter.
func (n nameMark) bits() func(yield func(uint32) bool) {
	first, step := binary.BigEndian.Uint32(n[:4]), binary.BigEndian.Uint32(n[4:])|1
	return func(yield func(uint32) bool) {
		for i := range uint32(filterBits) {
			if !yield((first + i*step) % (8 * filterSize)) {
				return
			}
		}
	}
}
