// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/owneddir"
)

// LockName is the file name of the lock in the socket directory. No caller can have this
// name.
const LockName = ".lock"

// lock locks the directory for this process until the file is closed or the process ends, even by
// a signal. It locks a file in the directory that only the broker's user may open. Other users
// may be able to open the directory itself, and by locking it they could stop every broker. The
// file stays when the broker ends: if it were removed, two later brokers could lock two files of
// the same name.
func lock(dir *owneddir.Dir) (*os.File, error) {
	failed := func(err error) error { return fmt.Errorf("lock the socket directory %s: %w", dir.Path, err) }
	fd, err := unix.Openat(dir.FD(), LockName, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, failed(fmt.Errorf("open or make its file %s, a regular file of the broker's user: %w", LockName, err))
	}
	file := os.NewFile(uintptr(fd), LockName)
	var found unix.Stat_t
	switch err := unix.Fstat(fd, &found); {
	case err != nil:
		return nil, errors.Join(failed(err), file.Close())
	case found.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.Join(failed(fmt.Errorf("its file %s is not a regular file: remove it or choose another socket directory", LockName)), file.Close())
	case int(found.Uid) != os.Geteuid():
		return nil, errors.Join(failed(fmt.Errorf("its file %s belongs to the user %d, expected the broker's own user %d: remove it or choose another socket directory",
			LockName, found.Uid, os.Geteuid())), file.Close())
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another broker uses the directory: stop that broker or choose another socket directory")
		}
		return nil, errors.Join(failed(err), file.Close())
	}
	return file, nil
}
