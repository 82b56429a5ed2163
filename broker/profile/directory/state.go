// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Reason says in one word how the set that is served relates to the directory.
type Reason string

const (
	// Loaded means: what the directory holds is served, all of it.
	Loaded Reason = "Loaded"
	// NoProfiles means: nothing valid was found yet.
	NoProfiles Reason = "NoProfiles"
	// SetRejected means: the directory holds something else that was refused; the last
	// good set is served.
	SetRejected Reason = "SetRejected"
	// ProfilesRejected means: what the directory holds is served, save profiles with
	// problems.
	ProfilesRejected Reason = "ProfilesRejected"
	// Missing means: the file vanished; the last good set is served.
	Missing Reason = "Missing"
	// SignatureRejected means: the directory holds something else that nobody trusted
	// has signed for this place; the last good set is served.
	SignatureRejected Reason = "SignatureRejected"
	// RevisionRejected means: the directory holds a signed set that is older than one
	// that was served, or has its number; the last good set is served.
	RevisionRejected Reason = "RevisionRejected"
	// NotKept means: the directory holds a newer set that could not be kept for the
	// next start; the last good set is served.
	NotKept Reason = "NotKept"
)

// RejectionReasons are those that an Event with ResultRejected can have.
func RejectionReasons() []Reason {
	return []Reason{NoProfiles, SetRejected, Missing, SignatureRejected, RevisionRejected, NotKept}
}

// State is what a Source serves at one moment.
type State struct {
	// Digest identifies the set, empty while none is served.
	Digest string
	// Revision is the number that the set is signed with, 0 where no signature is
	// needed or none is served.
	Revision int64
	// Since is when this digest began to be served, zero while none is.
	Since time.Time
	// Reason tells how the set relates to what the directory holds.
	Reason Reason
	// Withdrawn are the profiles that were served and are out of service, those
	// that are so longest first.
	Withdrawn []Withdrawn
}

// Withdrawn is a profile that a set before had right, and the one that is served
// has with a problem.
type Withdrawn struct {
	Profile string
	// Since is when it went out of service.
	Since time.Time
}

// Result is the outcome of one look at the directory.
type Result string

const (
	// ResultLoaded means: a set was compiled and is served from now on.
	ResultLoaded Result = "loaded"
	// ResultRejected means: the file could not be used, or vanished.
	ResultRejected Result = "rejected"
	// ResultUnchanged means: the directory holds what it held at the last look.
	ResultUnchanged Result = "unchanged"
)

// Event tells an observer of one look at the directory.
type Event struct {
	Result Result
	// Reason is the state from now on.
	Reason Reason
	// Set is the new set where Result is ResultLoaded, else nil. It may be the one
	// before, with a higher revision.
	Set *profile.Set
	// Revision is the number that Set is signed with, 0 where none is needed.
	Revision int64
	// Kept reports that this is about the set that was kept from before the start, not
	// about the directory.
	Kept bool
	// Withdrawn are the profiles that were served and are out of service by Set.
	Withdrawn []Withdrawn
	// Problems are those of the file; a set can be loaded with some.
	Problems profile.Problems
	// Err is why the set could not be read, or was refused as a whole.
	Err error
}
