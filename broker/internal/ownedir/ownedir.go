// SPDX-License-Identifier: Apache-2.0

// Package ownedir opens directories that nobody but the broker's user or root can
// have made, so that nobody else can replace what the broker puts into them.
package ownedir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Kind is what a directory is for. Its errors say so.
type Kind struct {
	// Name is that of the directory, such as "socket directory".
	Name string
	// Content is what another owner could replace, such as "sockets".
	Content string
}

// Dir is an open directory, so that what is done in it is done in the one that was
// judged, whatever its path leads to by now.
type Dir struct {
	*os.File
	Path string
	// Own is set where the directory belongs to the broker's user. Else it is root's,
	// such as the root of a mounted volume, and is used as it is.
	Own bool
}

// Make opens the directory at a path as Open does, and makes those above it if they
// are missing. Links above it are the system's own.
func (k Kind) Make(path string) (*Dir, error) {
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the %s: %w", k.Name, err)
	}
	return k.Open(workingDirectory, path, path)
}

// FD is the file descriptor of the directory.
func (d *Dir) FD() int { return int(d.Fd()) }
