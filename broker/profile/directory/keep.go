// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/ownedir"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// The directory that sets are kept in looks as a kubelet leaves a projected
// volume: a directory for each set, and a link to the one that counts. So a set
// is there as a whole or not at all, whenever the process ends.
const (
	keptPattern = "..set-*"
	keptPrefix  = "..set-"
	nextLink    = "..data_next"
)

// stateDirectory is what the directory of kept sets is for.
var stateDirectory = ownedir.Kind{Name: "state directory", Content: "sets"}

// prepareStateDir makes the directory, or takes one that is there. Nobody else looks
// into one of the broker's own user; one of root stays as it is.
func prepareStateDir(path string) error {
	dir, err := stateDirectory.Make(path)
	if err != nil {
		return err
	}
	if dir.Own {
		if err := dir.Chmod(0o700); err != nil {
			return errors.Join(fmt.Errorf("close the state directory to others: %w", err), dir.Close())
		}
	}
	return dir.Close()
}

// keep makes a set the one that the next start begins with, and then records that
// it is the newest: wherever the process or the machine ends, the set is not older
// than the record says. Only after both may it be served.
func keep(dir string, set pair, newest record) (err error) {
	before, _ := os.Readlink(filepath.Join(dir, watch.DataLink)) // none the first time
	// What a process left that ended halfway takes room that this set may need.
	if err := removeKept(dir, before); err != nil {
		return err
	}
	next, err := os.MkdirTemp(dir, keptPattern) // mode 0700
	if err != nil {
		return err
	}
	counts := false
	defer func() {
		if !counts {
			err = errors.Join(err, os.RemoveAll(next))
		}
	}()
	for name, content := range map[string][]byte{profile.FileName: set.profiles, signed.FileName: set.signature} {
		if err := writeSynced(filepath.Join(next, name), content); err != nil {
			return err
		}
	}
	if err := syncDirectory(next); err != nil {
		return err
	}
	link := filepath.Join(dir, nextLink)
	if err := os.Symlink(filepath.Base(next), link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(dir, watch.DataLink)); err != nil {
		return err
	}
	counts = true
	if err := syncDirectory(dir); err != nil {
		return err
	}
	return newest.write(dir)
}

// removeKept removes what is kept save one set.
func removeKept(dir, except string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name == nextLink || (strings.HasPrefix(name, keptPrefix) && name != except) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
