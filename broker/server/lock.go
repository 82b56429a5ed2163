// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the directory for this process until the file is closed, or the
// process ends in whatever way. The directory itself is locked, so that there is
// nothing in it but the socket.
func lock(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the socket directory: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another broker runs in it: stop that one or choose another socket directory")
		}
		return nil, errors.Join(fmt.Errorf("lock the socket directory %s: %w", dir, err), file.Close())
	}
	return file, nil
}
