// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Trust says which signed sets may be served.
type Trust struct {
	// Keys are the trusted keys, 1 to 16 different ones. A set needs a signature by one of
	// them.
	Keys []ed25519.PublicKey
	// Audience is the audience that the set has to be signed for.
	Audience string
	// Lowest is the lowest revision that is accepted.
	Lowest int64
}

// DigestError means that the signature is valid, but the statement has the digest of other
// profiles.
type DigestError struct {
	// Found is the digest of the profiles. Stated is the digest in the statement.
	Found, Stated string
}

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("the profiles have the digest %s, expected %s as signed in %s", e.Found, e.Stated, FileName)
}

// RevisionError means that the signature is valid, but the set is too old, or has the
// revision of another set.
type RevisionError struct {
	Found  int64
	Reason string // what is expected, and why
}

// Error implements error.
func (e *RevisionError) Error() string {
	return fmt.Sprintf("the set has the revision %d, expected %s", e.Found, e.Reason)
}

// Check returns what is wrong with the fields of the trust, or nil.
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
	if n := len(t.Audience); n == 0 || n > maxAudienceLength {
		return fmt.Errorf("found an audience of %d bytes, expected 1 to %d", n, maxAudienceLength)
	}
	if t.Lowest < 0 {
		return fmt.Errorf("found the lowest revision %d, expected 0 or more", t.Lowest)
	}
	return nil
}

// Verify returns the statement of a signature file. It returns an error unless a trusted key has
// signed the statement, and the statement has this audience, at least the lowest revision, and
// the digest of these profiles. Verify does not read the statement before it has verified a
// signature. It verifies at most one signature for each trusted key, so its cost does not depend
// on the file. Each error is one sentence. Errors of type [*DigestError] and [*RevisionError] are
// among them.
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
		return Statement{}, &RevisionError{s.Revision, fmt.Sprintf("at least %d, the lowest allowed revision", t.Lowest)}
	}
	return s, nil
}

// verify returns nil if a trusted key has a valid signature. It tries all trusted keys, even
// after a valid signature.
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
