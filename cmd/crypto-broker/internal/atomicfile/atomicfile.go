// SPDX-License-Identifier: Apache-2.0

// Package atomicfile writes files that are complete or not there.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Prefix begins the names of files that are not complete yet.
const Prefix = ".crypto-broker-"

// Write calls write with a new file, and gives the file the path if write returns no error.
// Until then, and after an error, the path has what it had before. Write refuses a path with anything
// but a regular file, such as a device or a symbolic link, because the new file would replace it.
func Write(path string, mode fs.FileMode, write func(*os.File) error) (err error) {
	switch found, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("the output cannot be written: %w", err)
	case !found.Mode().IsRegular():
		return fmt.Errorf("the output cannot be written: found %s at %s, expected a regular file or none", kindOf(found.Mode()), path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), Prefix)
	if err != nil {
		return fmt.Errorf("the output cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the error to report is the first one
		}
	}()
	if err := write(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("the output cannot be written: %w", err)
	}
	return os.Rename(file.Name(), path)
}

// kindOf returns the kind of a file that is not a regular one.
func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	default:
		return "a device"
	}
}
