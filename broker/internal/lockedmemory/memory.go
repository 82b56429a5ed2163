// SPDX-License-Identifier: Apache-2.0

// Package lockedmemory allocates memory for keys. Where the system allows it, the memory is not swapped
// and not part of core dumps. The garbage collector does not copy it.
package lockedmemory

import "os"

// Memory has slots of one size. It is not safe for concurrent use. The zero value has no slots.
type Memory struct {
	bytes  []byte
	size   int
	unused []int
}

// New takes memory for at least this many slots of size bytes, and fills its last page with more
// slots. unlocked is the reason why the memory may be swapped or be in a core dump, or nil. If no
// memory can be allocated, unlocked is the reason, and there are no slots.
func New(slots, size int) (m Memory, unlocked error) {
	m.size = size
	bytes, unlocked, err := allocate(roundUp(slots*size, os.Getpagesize()))
	if err != nil {
		return m, err
	}
	m.bytes = bytes
	for i := range len(bytes) / size {
		m.unused = append(m.unused, i)
	}
	return m, unlocked
}

func roundUp(size, unit int) int { return (size + unit - 1) / unit * unit }

// Take returns the number of a slot, which has zeros. It reports false if all slots are taken.
func (m *Memory) Take() (slot int, ok bool) {
	if len(m.unused) == 0 {
		return 0, false
	}
	last := len(m.unused) - 1
	slot = m.unused[last]
	m.unused = m.unused[:last]
	return slot, true
}

// Slot returns the bytes of a slot. They are valid until Close.
func (m *Memory) Slot(i int) []byte { return m.bytes[i*m.size : (i+1)*m.size] }

// Bytes returns the bytes of all slots.
func (m *Memory) Bytes() []byte { return m.bytes }

// Free overwrites a slot.
func (m *Memory) Free(i int) {
	clear(m.Slot(i))
	m.unused = append(m.unused, i)
}

// Close overwrites all slots and releases the memory.
func (m *Memory) Close() {
	if m.bytes != nil {
		clear(m.bytes)
		release(m.bytes)
	}
	*m = Memory{}
}
