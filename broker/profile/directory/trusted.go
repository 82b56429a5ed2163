// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// trusted is what a Source with signed sets knows beyond one without. Only the
// watching goroutine uses it.
type trusted struct {
	signed.Trust
	stateDir string

	// revision and digest name the newest set that was served, also before this
	// start; revision is 0 while there was none.
	revision int64
	digest   string
	// kept names the set that is kept whole, with its record; the zero value where
	// there is none.
	kept record
	// damaged reports that the set of that revision was kept and is damaged. Then only
	// a newer one is taken.
	damaged bool
	// lost is why no set is taken at all: nothing tells which one was the newest.
	lost error
	// torn is a pair of files that did not belong together at the last look.
	torn string
	// unkept reports that the set of the last look was refused because it could not be
	// kept, which may be possible by now.
	unkept bool
}

// WithTrust makes Watch take only sets with a signature file beside them that
// trust finds valid, and none that is older than one that was served. It keeps
// the set that is served in the directory stateDir, given by its absolute path,
// and starts with it: so the end of the process is no way back to an older one.
// An empty stateDir keeps nothing. A higher revision of the set that is served
// is taken, too.
func WithTrust(trust signed.Trust, stateDir string) Option {
	return func(o *options) { o.trusted = &trusted{Trust: trust, stateDir: stateDir} }
}

// prepare checks the trust and makes the directory that sets are kept in.
func (t *trusted) prepare() error {
	if err := t.Check(); err != nil {
		return err
	}
	if t.stateDir == "" {
		return nil
	}
	if !filepath.IsAbs(t.stateDir) {
		return fmt.Errorf("state directory %q: expected an absolute path", t.stateDir)
	}
	t.stateDir = filepath.Clean(t.stateDir)
	return prepareStateDir(t.stateDir)
}

// takeSigned acts on a pair of files. It reports whether they were at rest.
func (s *Source) takeSigned(found pair) bool {
	t := s.trusted
	looked := profile.Digest(found.profiles) + " " + profile.Digest(found.signature)
	if !t.unkept && s.unchanged(looked) {
		return true
	}
	t.unkept = false
	if t.lost != nil {
		s.reject(RevisionRejected, Event{Err: t.lost}, looked)
		return true
	}
	if found.signature == nil {
		if s.halfway(found, looked) {
			return false
		}
		s.reject(SignatureRejected, Event{Err: fmt.Errorf("there is no %s beside %s, expected one, since this broker takes signed sets only", signed.FileName, profile.FileName)}, looked)
		return true
	}
	statement, err := t.Verify(found.profiles, found.signature)
	if err == nil {
		err = t.notOlder(statement)
	}
	var digest *signed.DigestError
	var revision *signed.RevisionError
	switch {
	case errors.As(err, &digest) && s.halfway(found, looked):
		return false
	case errors.As(err, &revision):
		s.reject(RevisionRejected, Event{Err: err}, looked)
		return true
	case err != nil:
		s.reject(SignatureRejected, Event{Err: err}, looked)
		return true
	}
	set, problems := s.current.Load(), profile.Problems(nil)
	if set == nil || set.Digest() != statement.Digest {
		if set, problems = s.build(found.profiles, looked); set == nil {
			return true
		}
	}
	if newest := (record{statement.Revision, statement.Digest}); t.stateDir != "" && t.kept != newest {
		if err := keep(t.stateDir, found, newest); err != nil {
			s.reject(NotKept, Event{Err: fmt.Errorf("the set cannot be kept in %s, expected it to be writable with room for two sets: %w", t.stateDir, err)}, looked)
			t.unkept = true
			return true
		}
		t.kept = newest
	}
	t.revision, t.digest, t.damaged = statement.Revision, statement.Digest, false
	s.looked = looked
	s.serve(Event{Set: set, Revision: statement.Revision, Problems: problems})
	return true
}

// halfway reports whether two files that do not belong together may be on their
// way: one that was written, before the other is. It says so once for each pair.
func (s *Source) halfway(found pair, looked string) bool {
	if found.whole || s.trusted.torn == looked {
		return false
	}
	s.trusted.torn = looked
	return true
}

// notOlder compares a set with the newest one that was served.
func (t *trusted) notOlder(statement signed.Statement) error {
	switch {
	case statement.Revision <= t.revision && t.damaged:
		return &signed.RevisionError{Found: statement.Revision, Reason: fmt.Sprintf("a higher one than %d, the last that this broker has served, since the set kept of that is damaged", t.revision)}
	case statement.Revision < t.revision:
		return &signed.RevisionError{Found: statement.Revision, Reason: fmt.Sprintf("at least %d, which this broker has served", t.revision)}
	case statement.Revision == t.revision && statement.Digest != t.digest:
		return &signed.RevisionError{Found: statement.Revision, Reason: fmt.Sprintf("a higher one, since %s was served with that number", t.digest)}
	}
	return nil
}
