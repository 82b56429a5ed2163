// SPDX-License-Identifier: Apache-2.0

// Package regular reads the files that others give to a broker: profiles,
// signatures, keys, and what it keeps itself. Any of them may turn out to be
// something else, such as a named pipe or a device, or be very large. Reading one
// never waits and takes bounded memory.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrBeingWritten means that a file changed while it was read. What was read is
// of no use, and the next try may be.
var ErrBeingWritten = errors.New("the file is being written")

// ErrNotRegular means that there is something else than a regular file.
var ErrNotRegular = errors.New("is not a regular file")

// Read returns the content of a regular file and what the system says about it.
// Of a file with more than limit bytes it returns limit+1, so that the caller sees
// that there are more. Symbolic links are followed: a kubelet reaches its files by
// them.
//
// A kubelet replaces files as a whole, but editors do not: content that changes
// under the reading is ErrBeingWritten.
func Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	file, before, err := open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
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
		clear(data) // it may be part of a secret
		return nil, nil, err
	}
	return data[:n], before, nil
}

// open opens a regular file. Opening a pipe would wait until somebody writes to it,
// unless it is opened without waiting. Opening a device may have effects of its own,
// so that is looked at first. What has taken the file's place in between is
// recognized when it is open.
func open(name string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
