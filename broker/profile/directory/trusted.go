// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// trusted is the state of a Source that takes only signed sets. Only the watching goroutine
// uses it.
type trusted struct {
	signed.Trust
	stateDir string

	// revision and digest name the newest set that was served, also before this start.
	// revision is 0 if none was served.
	revision int64
	digest   string
	// kept names the set that is stored completely and with its record. It is the zero
	// value if there is none.
	kept record
	// damaged reports whether the stored set of that revision is damaged. Then only a newer set
	// is accepted.
	damaged bool
	// lost is the reason why every set is refused, or nil: the newest set is not known any more.
	lost error
	// torn has the digests of two files that did not belong together at the last look.
	torn string
	// unkept reports whether the last look refused its set because the set could not be stored.
	// The next look tries again.
	unkept bool
}

// WithTrust makes Watch take only sets with a signature file that trust finds valid. It refuses
// sets that are older than one that was served. It stores the set that is served in the directory
// stateDir, an absolute path, and the next start begins with that set. So an older set is refused
// after a restart as well. If stateDir is empty, nothing is stored. Watch also accepts a higher
// revision of the served set.
func WithTrust(trust signed.Trust, stateDir string) Option {
	return func(o *options) { o.trusted = &trusted{Trust: trust, stateDir: stateDir} }
}

// prepare checks the trust and makes the state directory.
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

// takeSigned serves the set of two files, or rejects it. It reports false if possibly only one of
// the files has been written. Then the next look has to be soon.
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
		s.reject(SignatureRejected, Event{Err: fmt.Errorf("there is no %s beside %s, expected one, because this broker takes only signed sets", signed.FileName, profile.FileName)}, looked)
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

// halfway reports whether only one of two files that do not belong together may have been
// written yet. It reports true once for each pair of files.
func (s *Source) halfway(found pair, looked string) bool {
	if found.whole || s.trusted.torn == looked {
		return false
	}
	s.trusted.torn = looked
	return true
}

// notOlder returns an error for a set that is older than the newest one that was served, or
// has its revision and is another set.
func (t *trusted) notOlder(statement signed.Statement) error {
	switch {
	case statement.Revision <= t.revision && t.damaged:
		return &signed.RevisionError{Found: statement.Revision, Reason: fmt.Sprintf("a higher one than %d, the last revision that this broker has served, because the set kept with it is damaged", t.revision)}
	case statement.Revision < t.revision:
		return &signed.RevisionError{Found: statement.Revision, Reason: fmt.Sprintf("at least %d, which this broker has served", t.revision)}
	case statement.Revision == t.revision && statement.Digest != t.digest:
		return &signed.RevisionError{Found: statement.Revision, Reason: fmt.Sprintf("a higher one, because %s was served with that number", t.digest)}
	}
	return nil
}
