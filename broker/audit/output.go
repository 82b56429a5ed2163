// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Output stores or sends the lines of a log.
type Output interface {
	// Write writes whole lines. After an error it removes what it has written of them, if it can.
	Write(lines []byte) error
	// Sync returns once all lines are on the disk.
	Sync() error
	// Full reports whether the next lines belong in another file.
	Full() bool
	// Rotate begins a new file.
	Rotate() error
	// Previous returns the hash of the last line that was written before this log, or an empty
	// text if there is none.
	Previous() string
}

// Stream returns an output that never ends, such as standard error.
func Stream(w io.Writer) Output { return stream{w} }

type stream struct{ w io.Writer }

func (s stream) Write(lines []byte) error {
	_, err := s.w.Write(lines)
	return err
}

func (stream) Sync() error      { return nil }
func (stream) Full() bool       { return false }
func (stream) Rotate() error    { return nil }
func (stream) Previous() string { return "" }

// File is an output to a file. A full file is renamed to end in .1, the file before it in .2, and
// so on.
type File struct {
	path     string
	maxSize  int64
	keep     int
	previous string

	// lock is nil if the file is not locked.
	lock *os.File
	file *os.File
	size int64
	// torn reports whether the file ends with a part of a line.
	torn bool
}

// fileMode lets the group read, so a program that collects the records needs no further rights.
const fileMode = 0o640

// OpenFile opens a file or creates it. The file holds maxSize bytes, and the directory keeps the
// number keep of full files.
func OpenFile(path string, maxSize int64, keep int) (*File, error) {
	locked, err := lock(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, maxSize: maxSize, keep: keep, lock: locked}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.unlock())
	}
	if err := f.readEnd(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the audit file %s: %w", path, err), f.Close())
	}
	return f, nil
}

// readEnd reads the last line that was written. If the file has no whole line, the last line is
// in the file before it.
func (f *File) readEnd() error {
	last, err := endingOf(f.file, f.size)
	f.previous, f.torn = last.hash, last.torn
	if err != nil || last.hash != "" {
		return err
	}
	before, err := os.Open(f.name(1))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer before.Close()
	info, err := before.Stat()
	if err != nil {
		return err
	}
	last, err = endingOf(before, info.Size())
	f.previous = last.hash
	return err
}

// name returns the name of a full file. The newest has the number 1.
func (f *File) name(n int) string { return fmt.Sprintf("%s.%d", f.path, n) }

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return fmt.Errorf("open the audit file: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("the audit file %s is not a regular file", f.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements Output.
func (f *File) Write(lines []byte) error {
	if f.torn { // the next text has to begin on a new line
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := f.file.Write(lines)
	if err != nil {
		if n > 0 && f.file.Truncate(f.size) != nil {
			f.size += int64(n)
			f.torn = true
		}
		return err
	}
	f.size += int64(n)
	f.torn = false
	return nil
}

// Sync implements Output.
func (f *File) Sync() error { return f.file.Sync() }

// Full implements Output. A file that somebody has deleted or moved away counts as full, because
// nobody would find further lines in a deleted file.
func (f *File) Full() bool {
	if f.size >= f.maxSize {
		return true
	}
	_, err := os.Lstat(f.path)
	return errors.Is(err, os.ErrNotExist)
}

// Previous implements Output.
func (f *File) Previous() string { return f.previous }

// errGone means that lines would go to a file that nobody finds.
var errGone = errors.New("the audit file was deleted or moved away, and a new one cannot be made")

// Rotate implements Output. If it fails before there is a new file, lines still go to the same file,
// and no full file is deleted however often it is called. If somebody has moved the file away, only a
// new file begins.
func (f *File) Rotate() error {
	free := 1 // the first number without a file, or else the number of the oldest file
	for free < f.keep {
		if _, err := os.Lstat(f.name(free)); errors.Is(err, os.ErrNotExist) {
			break
		}
		free++
	}
	moved := false
	if _, err := os.Lstat(f.path); !errors.Is(err, os.ErrNotExist) {
		moved = true
		for n := free - 1; n > 0; n-- {
			if err := os.Rename(f.name(n), f.name(n+1)); err != nil {
				return fmt.Errorf("rotate the audit file: %w", err)
			}
		}
		if err := os.Rename(f.path, f.name(1)); err != nil {
			return fmt.Errorf("rotate the audit file: %w", err)
		}
	}
	full := f.file
	if err := f.open(); err != nil {
		if !moved {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		return errors.Join(err, os.Rename(f.name(1), f.path))
	}
	f.torn = false
	return errors.Join(full.Close(), syncDirectory(filepath.Dir(f.path)))
}

// syncDirectory syncs the names of files to the disk.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// Close closes the file.
func (f *File) Close() error { return errors.Join(f.file.Close(), f.unlock()) }

func (f *File) unlock() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}
