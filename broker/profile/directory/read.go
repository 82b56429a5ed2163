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
	"github.com/crypto-broker/crypto-broker-operator/broker/regular"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// pair is a profile file and its signature.
type pair struct {
	profiles, signature []byte
	// whole reports that both were put in place in one step, so that they are what
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
		return pair{}, regular.ErrBeingWritten
	}
	found.whole = true
	return found, err
}

func readFiles(dir string) (pair, error) {
	profiles, _, err := regular.Read(filepath.Join(dir, profile.FileName), profile.MaxFileSize)
	if err != nil {
		return pair{}, err
	}
	signature, _, err := regular.Read(filepath.Join(dir, signed.FileName), signed.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair{}, err
	}
	return pair{profiles: profiles, signature: signature}, nil
}
