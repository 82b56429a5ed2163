// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

var errBeingWritten = errors.New("the file is being written")

// pair is a profile file and its signature.
type pair struct {
	profiles, signature []byte
	// whole tells that both were put in place in one step, so that they are what
	// somebody meant to be together.
	whole bool
}

// readPair reads both files of a directory. Where a kubelet projected them, both
// come from the same projection, whatever it does meanwhile. A signature that is
// not there is none; profiles that are not there are an error.
func readPair(dir string) (pair, error) {
	target, err := os.Readlink(filepath.Join(dir, watch.DataLink))
	if errors.Is(err, fs.ErrNotExist) {
		return readFiles(dir)
	}
	if err != nil {
		return pair{}, fmt.Errorf("read the link of the projected volume: %w", err)
	}
	from := target
	if !filepath.IsAbs(from) {
		from = filepath.Join(dir, from)
	}
	found, err := readFiles(from)
	if now, _ := os.Readlink(filepath.Join(dir, watch.DataLink)); now != target {
		// There is another projection, and the kubelet removes this one file by file.
		return pair{}, errBeingWritten
	}
	found.whole = true
	return found, err
}

func readFiles(dir string) (pair, error) {
	profiles, err := readFile(filepath.Join(dir, FileName), MaxFileSize)
	if err != nil {
		return pair{}, err
	}
	signature, err := readFile(filepath.Join(dir, signed.FileName), signed.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair{}, err
	}
	return pair{profiles: profiles, signature: signature}, nil
}

// readFile returns the content of a file, or one byte more than limit where it has
// more than that. A kubelet replaces files as a whole, but editors do not:
// content that changes under the reading is not used.
func readFile(name string, limit int64) ([]byte, error) {
	// Opening a pipe would block until somebody writes to it.
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	before, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	after, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return nil, errBeingWritten
	}
	return data, nil
}
