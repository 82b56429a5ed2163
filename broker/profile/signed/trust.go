// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Trust is what a set must satisfy to be served.
type Trust struct {
	// Keys are those whose signature counts, 1 to 16 different ones.
	Keys []ed25519.PublicKey
	// Audience is the place the set must be made for.
	Audience string
	// Lowest is the lowest revision that is taken.
	Lowest int64
}

// DigestError means that a validly signed statement is about other profiles.
type DigestError struct {
	// Found is the digest of the profiles, Stated the one that was signed.
	Found, Stated string
}

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("the profiles have the digest %s, expected %s as signed in %s", e.Found, e.Stated, FileName)
}

// RevisionError means that a validly signed set for this place is too old, or
// has the number of another set.
type RevisionError struct {
	Found  int64
	Reason string // what is expected, and why
}

// Error implements error.
func (e *RevisionError) Error() string {
	return fmt.Sprintf("the set has the revision %d, expected %s", e.Found, e.Reason)
}

// Check reports whether the trust itself makes sense.
func (t Trust) Check() error {
	if n := len(t.Keys); n == 0 || n > MaxSignatures {
		return fmt.Errorf("found %d trusted keys, expected 1 to %d", n, MaxSignatures)
	}
	seen := map[string]bool{}
	for _, key := range t.Keys {
		if len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("found a trusted key of %d bytes, expected the %d of Ed25519", len(key), ed25519.PublicKeySize)
		}
		id := KeyID(key)
		if seen[id] {
			return fmt.Errorf("found the trusted key %s twice, expected each once", id)
		}
		seen[id] = true
	}
	if n := len(t.Audience); n == 0 || n > MaxAudienceLength {
		return fmt.Errorf("found an audience of %d bytes, expected 1 to %d", n, MaxAudienceLength)
	}
	if t.Lowest < 0 {
		return fmt.Errorf("found the lowest revision %d, expected 0 or more", t.Lowest)
	}
	return nil
}

// Verify returns the statement of a signature file if one valid signature at
// least is by a trusted key, it is for this audience, its revision is not too
// low, and it is about these profiles. Nothing of the statement is looked at
// before its signature was found valid. The work is bounded by the number of
// trusted keys, whatever the file holds. Errors are one sentence each, among
// them *DigestError and *RevisionError.
func (t Trust) Verify(profiles, signature []byte) (Statement, error) {
	if err := t.Check(); err != nil {
		return Statement{}, err
	}
	e, err := readEnvelope(signature)
	if err != nil {
		return Statement{}, err
	}
	if err := t.verify(&e); err != nil {
		return Statement{}, err
	}
	s, err := readStatement(e.Payload)
	if err != nil {
		return Statement{}, err
	}
	if s.Audience != t.Audience {
		return Statement{}, fmt.Errorf("the set is signed for %s, expected %s", quote(s.Audience), quote(t.Audience))
	}
	if found := Digest(profiles); found != s.Digest {
		return Statement{}, &DigestError{Found: found, Stated: s.Digest}
	}
	if s.Revision < t.Lowest {
		return Statement{}, &RevisionError{s.Revision, fmt.Sprintf("at least %d, the lowest that is allowed here", t.Lowest)}
	}
	return s, nil
}

// verify looks for a valid signature by a trusted key. All trusted keys are tried,
// whether or not an earlier one was good.
func (t Trust) verify(e *envelope) error {
	message := preAuthenticationEncoding(e.PayloadType, e.Payload)
	valid := false
	var invalid, trusted []string
	for _, key := range t.Keys {
		id := KeyID(key)
		trusted = append(trusted, id)
		at := slices.IndexFunc(e.Signatures, func(s signature) bool { return s.KeyID == id })
		switch {
		case at < 0:
		case ed25519.Verify(key, message, e.Signatures[at].Sig):
			valid = true
		default:
			invalid = append(invalid, id)
		}
	}
	switch {
	case valid:
		return nil
	case len(invalid) > 0:
		return fmt.Errorf("the signature in %s with the key %s does not match what it signs, expected a valid one", FileName, strings.Join(invalid, ", "))
	}
	var found []string
	for _, id := range e.keyIDs() {
		found = append(found, quote(id))
	}
	return errors.New(FileName + " is signed with the keys " + strings.Join(found, ", ") + ", expected one of the trusted keys " + strings.Join(trusted, ", "))
}
