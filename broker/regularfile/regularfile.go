// SPDX-License-Identifier: Apache-2.0

// Package regularfile reads regular files: profiles, signatures, keys, and the state of a broker.
// At the path of such a file there may be something else, such as a named pipe or a device, or
// a very large file. Reading never waits, and takes bounded memory.
package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrBeingWritten means that a file changed while it was read. The next attempt may succeed.
var ErrBeingWritten = errors.New("the file is being written")

// ErrNotRegular means that the file at the path is not a regular file.
var ErrNotRegular = errors.New("is not a regular file")

// Read returns the content and the information of a regular file. If the file has more than
// limit bytes, Read returns limit+1 of them, so that the caller knows that there are more. Read
// follows symbolic links, because the files of a kubelet are behind links.
//
// Editors do not replace files as a whole, as a kubelet does. If the file changes while Read
// reads it, Read returns [ErrBeingWritten].
func Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	return read(system{}, name, limit)
}

// ReadIn reads a file below a directory, as Read does. It follows no link out of the directory.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	return read(root, name, limit)
}

// files is the file system, or a directory of it.
type files interface {
	Stat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error)
}

type system struct{}

func (system) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (system) OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, mode)
}

func read(in files, name string, limit int64) ([]byte, fs.FileInfo, error) {
	file, before, err := open(in, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // the file was only read, so an error loses no data
	expected := min(before.Size(), limit+1)
	// One byte more than expected shows whether the file has grown.
	data := make([]byte, expected+1)
	n, err := io.ReadFull(file, data[:min(expected+1, limit+1)])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		clear(data)
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	after, err := file.Stat()
	if err == nil && (int64(n) != expected || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
		err = ErrBeingWritten
	}
	if err != nil {
		clear(data) // the text may be part of a secret
		return nil, nil, err
	}
	return data[:n], before, nil
}

// open opens a regular file. It checks the type of the file first, because opening a device may
// have effects. It opens the file without waiting, because opening a pipe would wait for a
// writer. It checks the type again afterwards, because the file may have been replaced in
// between.
func open(in files, name string) (*os.File, fs.FileInfo, error) {
	info, err := in.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	file, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}
