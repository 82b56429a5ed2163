// SPDX-License-Identifier: Apache-2.0

package lockedmemory

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// allocate returns whole pages of memory. unlocked is the reason why they may be swapped or be in
// a core dump, or nil.
func allocate(size int) (memory []byte, unlocked, err error) {
	memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("take %d bytes of memory: %w", size, err)
	}
	if err := unix.Madvise(memory, unix.MADV_DONTDUMP); err != nil {
		unlocked = fmt.Errorf("keep %d bytes of memory out of core dumps: %w", size, err)
	}
	if err := unix.Mlock(memory); err != nil {
		unlocked = fmt.Errorf("lock %d bytes of memory: %w", size, err)
	}
	return memory, unlocked, nil
}

func release(memory []byte) { _ = unix.Munmap(memory) }
