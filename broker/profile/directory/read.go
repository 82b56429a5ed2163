// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// pair is a profile file and its signature.
type pair struct {
	profiles, signature []byte
	// whole reports whether both files were put in place in one step, so that they belong
	// together.
	whole bool
}

// readPair reads both files of a directory. If a kubelet has projected them, both files are
// from the same projection. The signature is nil if there is no signature file. A missing
// profile file is an error.
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
		// The kubelet has made a new projection, and is removing the files of the old one.
		return pair{}, regularfile.ErrBeingWritten
	}
	found.whole = true
	return found, err
}

func readFiles(dir string) (pair, error) {
	profiles, _, err := regularfile.Read(filepath.Join(dir, profile.FileName), profile.MaxFileSize)
	if err != nil {
		return pair{}, err
	}
	signature, _, err := regularfile.Read(filepath.Join(dir, signed.FileName), signed.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair{}, err
	}
	return pair{profiles: profiles, signature: signature}, nil
}
