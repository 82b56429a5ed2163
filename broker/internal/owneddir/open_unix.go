// SPDX-License-Identifier: Apache-2.0

//go:build unix

package owneddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// workingDirectory stands for the working directory in place of a file descriptor.
const workingDirectory = unix.AT_FDCWD

// Open opens a directory, and makes it if it is missing. name is its name in the directory
// with the file descriptor at, and path is its path for errors. Open refuses a symbolic link,
// and a directory that belongs neither to the broker's user nor to root.
func (k Kind) Open(at int, name, path string) (*Dir, error) {
	if err := unix.Mkdirat(at, name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the %s %s: %w", k.Name, path, err)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, k.noDirectory(at, name, path)
	case err != nil:
		return nil, fmt.Errorf("open the %s %s: %w", k.Name, path, err)
	}
	dir := &Dir{File: os.NewFile(uintptr(fd), path), Path: path}
	if dir.Own, err = k.own(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// noDirectory returns the error for a path that is not a directory.
func (k Kind) noDirectory(at int, name, path string) error {
	var found unix.Stat_t
	if err := unix.Fstatat(at, name, &found, unix.AT_SYMLINK_NOFOLLOW); err == nil && found.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fmt.Errorf("the %s %s is a symbolic link, expected a directory: remove the link or choose another %s", k.Name, path, k.Name)
	}
	return fmt.Errorf("the %s %s exists and is not a directory: remove it or choose another %s", k.Name, path, k.Name)
}

// own reports whether a directory belongs to the broker's user. It returns an error if the
// directory belongs neither to the broker's user nor to root.
func (k Kind) own(dir *Dir) (bool, error) {
	var found unix.Stat_t
	if err := unix.Fstat(dir.FD(), &found); err != nil {
		return false, fmt.Errorf("look at the %s %s: %w", k.Name, dir.Path, err)
	}
	switch owner := int(found.Uid); owner {
	case os.Geteuid():
		return true, nil
	case 0:
		return false, nil
	default:
		return false, fmt.Errorf("the %s %s belongs to the user %d, who could replace the %s in it, expected the broker's own user %d or root: remove it, change its owner, or choose another %s",
			k.Name, dir.Path, owner, k.Content, os.Geteuid(), k.Name)
	}
}
