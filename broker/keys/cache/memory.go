// SPDX-License-Identifier: Apache-2.0

package cache

import "os"

// memory has a slot for each data key. The garbage collector does not know it, so it has no
// copies.
type memory struct {
	bytes  []byte // nil before allocate
	unused []int
	// unlocked is why the memory may be swapped or be in a core dump, or nil.
	unlocked error
}

// allocate takes the memory. It returns why there is none, or why it is not locked.
func (m *memory) allocate() error {
	var err error
	if m.bytes, m.unlocked, err = allocate(roundUp(MaxKeys*MaxKeySize, os.Getpagesize())); err != nil {
		m.bytes, m.unlocked = nil, err
	}
	for i := range len(m.bytes) / MaxKeySize {
		m.unused = append(m.unused, i)
	}
	return m.unlocked
}

// take returns a slot, which has zeros. It reports false if there is none.
func (m *memory) take() (slot int, ok bool) {
	if len(m.unused) == 0 {
		return 0, false
	}
	last := len(m.unused) - 1
	slot = m.unused[last]
	m.unused = m.unused[:last]
	return slot, true
}

func roundUp(size, unit int) int { return (size + unit - 1) / unit * unit }

func (m *memory) slot(i int) []byte { return m.bytes[i*MaxKeySize : (i+1)*MaxKeySize] }

// free overwrites a slot.
func (m *memory) free(i int) {
	clear(m.slot(i))
	m.unused = append(m.unused, i)
}

// close gives the memory back.
func (m *memory) close() {
	if m.bytes != nil {
		clear(m.bytes)
		release(m.bytes)
	}
	m.bytes, m.unused = nil, nil
}
