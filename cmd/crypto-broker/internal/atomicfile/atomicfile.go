// SPDX-License-Identifier: Apache-2.0

// Package atomicfile writes files that are complete or not there.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Prefix begins the names of files that are not complete yet.
const Prefix = ".crypto-broker-"

// Write calls write with a new file, and gives the file the path if write returns no error.
// Until then, and after an error, the path has what it had before.
func Write(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
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
