// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Format is the version of the statement that this package reads and writes.
const Format = 1

// maxAudienceLength is the longest audience, in bytes.
const maxAudienceLength = 256

// Statement is the signed statement about a set of profiles.
type Statement struct {
	// Format is the version of the statement, 1.
	Format int `json:"format"`
	// Audience is the cluster and the namespace that may serve the set, 1 to 256 bytes. A broker
	// compares the whole text. The operator writes "<UID of namespace
	// kube-system>/<namespace>/<UID of namespace>".
	Audience string `json:"audience"`
	// Revision is the number of the set, from 1. A newer set of the same audience has a
	// higher number.
	Revision int64 `json:"revision"`
	// Time is when the statement was signed, in UTC. It has no effect.
	Time time.Time `json:"time"`
	// Digest is the digest of Profiles.yaml, as [Digest] returns it.
	Digest string `json:"digest"`
}

// Digest returns the SHA-256 of a profile file, which identifies the set: "sha256:" and 64
// lower-case hexadecimal digits.
func Digest(profiles []byte) string {
	sum := sha256.Sum256(profiles)
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// check returns the first problem of the values of a statement, or nil.
func (s *Statement) check() error {
	switch {
	case s.Audience == "" || len(s.Audience) > maxAudienceLength:
		return fmt.Errorf("has an audience of %d bytes, expected 1 to %d", len(s.Audience), maxAudienceLength)
	case s.Revision < 1:
		return fmt.Errorf("has the revision %d, expected 1 or more", s.Revision)
	case s.Time.IsZero() || s.Time.Location() != time.UTC:
		return errors.New("has no time in UTC, expected the time when it was signed")
	}
	sum, ok := strings.CutPrefix(s.Digest, digestPrefix)
	if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size || sum != hex.EncodeToString(raw) {
		return fmt.Errorf("has the digest %s, expected %q and 64 lower-case hexadecimal digits", quote(s.Digest), digestPrefix)
	}
	return nil
}

func readStatement(payload []byte) (Statement, error) {
	// The number of the format is read first, because a later format may have other fields.
	var version struct {
		Format *int `json:"format"`
	}
	if err := json.Unmarshal(payload, &version); err != nil {
		return Statement{}, fmt.Errorf("the statement in %s has no format that is a number, expected %d", FileName, Format)
	}
	if version.Format == nil {
		return Statement{}, fmt.Errorf("the statement in %s has no format, expected %d", FileName, Format)
	}
	if *version.Format != Format {
		return Statement{}, fmt.Errorf("the statement in %s has the format %d, expected %d", FileName, *version.Format, Format)
	}
	var s Statement
	if err := decode(payload, &s, "format, audience, revision, time and digest"); err != nil {
		return Statement{}, fmt.Errorf("the statement in %s %w", FileName, err)
	}
	if err := s.check(); err != nil {
		return Statement{}, fmt.Errorf("the statement in %s %w", FileName, err)
	}
	return s, nil
}
