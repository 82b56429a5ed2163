// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// directory is one with a socket in it, or with such directories. It is open, so
// that what is done in it is done in the one that was judged, whatever its path
// leads to by now.
type directory struct {
	*os.File
	path string
}

// openDirectory opens a directory, and makes it if it is missing. name is what
// leads to it from the directory at. It belongs to the broker's own user and then
// gets the mode and the group of the options, or to root and is used as it is, such
// as the root of a mounted volume. One of anybody else, who could replace the
// sockets in it, is refused, and so is a symbolic link.
func (o *SocketOptions) openDirectory(at int, name, path string) (*directory, error) {
	if err := unix.Mkdirat(at, name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the socket directory %s: %w", path, err)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, noDirectory(at, name, path)
	case err != nil:
		return nil, fmt.Errorf("open the socket directory %s: %w", path, err)
	}
	dir := &directory{os.NewFile(uintptr(fd), path), path}
	if err := o.judge(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// noDirectory says what is in the place of a directory.
func noDirectory(at int, name, path string) error {
	var found unix.Stat_t
	if err := unix.Fstatat(at, name, &found, unix.AT_SYMLINK_NOFOLLOW); err == nil && found.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fmt.Errorf("the socket directory %s is a symbolic link, expected a directory: remove the link or choose another socket directory", path)
	}
	return fmt.Errorf("the socket directory %s exists and is no directory: remove it or choose another socket directory", path)
}

// judge looks at who owns a directory, and puts mode and group right where that is
// the broker.
func (o *SocketOptions) judge(dir *directory) error {
	var found unix.Stat_t
	if err := unix.Fstat(dir.fd(), &found); err != nil {
		return fmt.Errorf("look at the socket directory %s: %w", dir.path, err)
	}
	switch owner := int(found.Uid); owner {
	case os.Geteuid():
		return o.grant(dir.path, 0o700, 0o750,
			func(group int) error { return unix.Fchown(dir.fd(), -1, group) },
			func(mode uint32) error { return unix.Fchmod(dir.fd(), mode) })
	case 0:
		return nil
	default:
		return fmt.Errorf("the socket directory %s belongs to the user %d, who could replace the sockets in it, expected the broker's own user %d or root: remove it, change its owner, or choose another socket directory",
			dir.path, owner, os.Geteuid())
	}
}

func (d *directory) fd() int { return int(d.Fd()) }

// grant gives a file of the broker to its group, or to nobody else.
func (o *SocketOptions) grant(path string, alone, shared uint32, chown func(group int) error, chmod func(mode uint32) error) error {
	mode := alone
	if o.Group >= 0 {
		mode = shared
		if err := chown(o.Group); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("give %s to the group %d: the broker's user must be a member of it: %w", path, o.Group, err)
		} else if err != nil {
			return fmt.Errorf("give %s to the group %d: %w", path, o.Group, err)
		}
	}
	if err := chmod(mode); err != nil {
		return fmt.Errorf("set the mode of %s to %04o: %w", path, mode, err)
	}
	return nil
}
