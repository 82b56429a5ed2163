// SPDX-License-Identifier: Apache-2.0

// Package owneddir opens directories that belong to the broker's user or to root, so that no
// other user can replace what the broker puts into them.
package owneddir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Kind is the purpose of a directory, for errors.
type Kind struct {
	// Name is the name of the directory, such as "socket directory".
	Name string
	// Content names the files that another owner could replace, such as "sockets".
	Content string
}

// Dir is an open directory. Its owner was checked. Operations with its file descriptor are
// always in this directory, even if another directory is at its path now.
type Dir struct {
	*os.File
	Path string
	// Own reports whether the directory belongs to the broker's user. Otherwise the directory
	// belongs to root, as the root of a mounted volume does, and the broker does not change it.
	Own bool
}

// Make opens the directory at a path as [Kind.Open] does, and makes the directories above it
// if they are missing. It follows symbolic links in the path above the directory.
func (k Kind) Make(path string) (*Dir, error) {
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the %s: %w", k.Name, err)
	}
	return k.Open(workingDirectory, path, path)
}

// FD returns the file descriptor of the directory.
func (d *Dir) FD() int { return int(d.Fd()) }
