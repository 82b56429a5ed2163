// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
)

// recordName is the name of the file in the state directory that names the newest set that was
// served. It is not in the directory of the set, so it stays readable if the set is damaged.
const recordName = "newest"

// maxRecordSize is the largest record that is read, in bytes. A record has some 130 bytes.
const maxRecordSize = 1 << 10

// record names the newest set that was served. The zero value means that no set was served.
type record struct {
	revision int64
	digest   string
}

// line returns the record as text.
func (r record) line() string { return fmt.Sprintf("1 %d %s", r.revision, r.digest) }

// text returns the content of the file: a line with the record, and a line with its
// checksum.
func (r record) text() []byte {
	sum := sha256.Sum256([]byte(r.line()))
	return fmt.Appendf(nil, "%s\n%s\n", r.line(), hex.EncodeToString(sum[:]))
}

// readRecord reads the record of a state directory. If there is none, the error is
// fs.ErrNotExist.
func readRecord(dir string) (record, error) {
	data, _, err := regularfile.Read(filepath.Join(dir, recordName), maxRecordSize)
	if err != nil {
		return record{}, err
	}
	var version int
	var found record
	n, err := fmt.Sscanf(string(data), "%d %d %s", &version, &found.revision, &found.digest)
	if err != nil || n != 3 || version != 1 || found.revision < 1 || string(found.text()) != string(data) {
		return record{}, fmt.Errorf("%s is damaged, expected a line with the newest revision and one with its checksum", filepath.Join(dir, recordName))
	}
	return found, nil
}

// write replaces the record of a state directory as a whole.
func (r record) write(dir string) (err error) {
	next := filepath.Join(dir, "."+recordName)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeSynced(next, r.text()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, filepath.Join(dir, recordName)); err != nil {
		return err
	}
	return syncDirectory(dir)
}

// writeSynced makes a file whose content survives a crash of the machine.
func writeSynced(name string, content []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDirectory makes the names in a directory survive a crash of the machine.
func syncDirectory(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
