// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// restore serves the set that an earlier process stored. If the set is damaged, the record still
// tells which sets are too old.
func (s *Source) restore() {
	t := s.trusted
	if t.stateDir == "" {
		return
	}
	known, unknown := readRecord(t.stateDir)
	if _, err := os.Lstat(filepath.Join(t.stateDir, watch.DataLink)); errors.Is(err, fs.ErrNotExist) && errors.Is(unknown, fs.ErrNotExist) {
		return // nothing was kept yet
	}
	refuse := func(err error, problems profile.Problems) {
		s.observe(Event{
			Result: ResultRejected, Reason: NoProfiles, Kept: true, Problems: problems,
			Err: fmt.Errorf("the set kept in %s cannot be used: %w", t.stateDir, err),
		})
	}
	kept, statement, err := t.readKept(known)
	// A set may have no record: the broker ended before it wrote the record, or its version
	// wrote none. The set is the newest, because a newer one would have replaced it before
	// it was served.
	if err != nil && unknown != nil || unknown != nil && !errors.Is(unknown, fs.ErrNotExist) {
		t.lost = fmt.Errorf("what is kept in %s is damaged, so the broker does not know which set it served last, and serves none: to accept any signed set again, stop the broker, empty that directory and start the broker, or delete the pod", t.stateDir)
		refuse(cmp.Or(err, unknown), nil)
		return
	}
	t.revision, t.digest = known.revision, known.digest
	if err != nil {
		t.damaged = !kept.is(known)
		refuse(err, nil)
		return
	}
	t.revision, t.digest, t.kept = statement.Revision, statement.Digest, known
	set, problems := profile.Compile(profile.FileName, kept.profiles, s.compile...)
	if set == nil {
		refuse(errors.New("this broker cannot read it"), problems)
		return
	}
	s.serve(Event{Set: set, Revision: statement.Revision, Problems: problems, Kept: true})
}

// readKept reads and verifies the set of the state directory. It returns an error if the set
// is older than the record says.
func (t *trusted) readKept(known record) (pair, signed.Statement, error) {
	kept, err := readPair(t.stateDir)
	if err != nil {
		return pair{}, signed.Statement{}, err
	}
	statement, err := t.Verify(kept.profiles, kept.signature)
	if err != nil {
		return kept, signed.Statement{}, err
	}
	return kept, statement, (&trusted{revision: known.revision, digest: known.digest}).notOlder(statement)
}

// is reports whether a pair is the set that a record names. It does not check the signature,
// because the key of a complete set may not be trusted any more.
func (p pair) is(known record) bool {
	statement, _, err := signed.Read(p.signature)
	return err == nil && statement.Revision == known.revision && statement.Digest == known.digest && profile.Digest(p.profiles) == known.digest
}
