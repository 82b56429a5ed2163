// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/owneddir"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// The state directory has the form of a volume that a kubelet has projected: a directory for each
// set, and a link to the directory of the current set. So a crash leaves either a complete set or
// no part of it.
const (
	keptPattern = "..set-*"
	keptPrefix  = "..set-"
	nextLink    = "..data_next"
)

// stateDirectory is the name of the directory of stored sets in errors.
var stateDirectory = owneddir.Kind{Name: "state directory", Content: "sets"}

// prepareStateDir makes the state directory if it does not exist. If it belongs to the broker's
// own user, prepareStateDir denies access to all others. It does not change a directory of root.
func prepareStateDir(path string) error {
	dir, err := stateDirectory.Make(path)
	if err != nil {
		return err
	}
	if dir.Own {
		if err := dir.Chmod(0o700); err != nil {
			return errors.Join(fmt.Errorf("deny others access to the state directory: %w", err), dir.Close())
		}
	}
	return dir.Close()
}

// keep stores the set for the next start, and then records that it is the newest. This order
// ensures that the stored set is never older than the set of the record, even after a crash
// between the two steps. The set may be served only after keep has returned nil.
func keep(dir string, set pair, newest record) (err error) {
	before, _ := os.Readlink(filepath.Join(dir, watch.DataLink)) // empty the first time
	// Files of an interrupted process may take the room that this set needs.
	if err := removeKept(dir, before); err != nil {
		return err
	}
	next, err := os.MkdirTemp(dir, keptPattern) // mode 0700
	if err != nil {
		return err
	}
	stored := false
	defer func() {
		if !stored {
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
	stored = true
	if err := syncDirectory(dir); err != nil {
		return err
	}
	return newest.write(dir)
}

// removeKept removes all kept sets except one.
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
