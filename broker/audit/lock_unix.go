// SPDX-License-Identifier: Apache-2.0

//go:build unix

package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps other programs from writing the same audit file until the returned file is closed or
// the process ends. The lines of two programs in one file look like damage, and each would cut off lines of
// the other after a failed write. lock locks a file that only the program's user may open: programs
// that collect records may open the audit file itself, and could stop the broker with a lock on it. The
// result is nil if there cannot be such a file, because the program may write only the audit file.
func lock(path string) (*os.File, error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // see above
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("another program writes the audit file %s, expected a file for each program", path), file.Close())
	}
	return file, nil // some file systems have no locks
}
