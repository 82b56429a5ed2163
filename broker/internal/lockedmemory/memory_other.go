// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package lockedmemory

import "errors"

// allocate returns memory that may be swapped.
func allocate(size int) (memory []byte, unlocked, err error) {
	return make([]byte, size), errors.New("this system has no locked memory that the broker uses"), nil
}

func release([]byte) {}
