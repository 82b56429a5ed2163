// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Reason is a word for the relation of the served set to the directory.
type Reason string

const (
	// Loaded means that all profiles of the directory are served.
	Loaded Reason = "Loaded"
	// NoProfiles means that no valid set has been found yet.
	NoProfiles Reason = "NoProfiles"
	// SetRejected means that the set in the directory was refused. The last good set is
	// served.
	SetRejected Reason = "SetRejected"
	// ProfilesRejected means that the set in the directory is served, except for profiles
	// with problems.
	ProfilesRejected Reason = "ProfilesRejected"
	// Missing means that the profile file is missing. The last good set is served.
	Missing Reason = "Missing"
	// SignatureRejected means that the set in the directory has no valid signature by a
	// trusted key for this audience. The last good set is served.
	SignatureRejected Reason = "SignatureRejected"
	// RevisionRejected means that the signed set in the directory is older than a set that
	// was served, or has the revision of another set. The last good set is served.
	RevisionRejected Reason = "RevisionRejected"
	// NotKept means that the newer set in the directory could not be stored for the next
	// start. The last good set is served.
	NotKept Reason = "NotKept"
)

// RejectionReasons returns the reasons that an Event with [ResultRejected] can have.
func RejectionReasons() []Reason {
	return []Reason{NoProfiles, SetRejected, Missing, SignatureRejected, RevisionRejected, NotKept}
}

// State describes the set that a Source serves at one moment.
type State struct {
	// Digest identifies the served set. It is empty while no set is served.
	Digest string
	// Revision is the revision in the signed statement of the set. It is 0 if no signature
	// is needed, and while no set is served.
	Revision int64
	// Since is the time since which the set with this digest is served. It is zero while no set
	// is served.
	Since time.Time
	// Reason says how the set relates to the content of the directory.
	Reason Reason
	// Withdrawn are the profiles that were served and are out of service, in the order in which
	// they went out of service.
	Withdrawn []Withdrawn
}

// Withdrawn is a profile that an earlier set has served. In the served set the profile has a
// problem and is out of service.
type Withdrawn struct {
	Profile string
	// Since is when the profile went out of service.
	Since time.Time
}

// Result is the outcome of one look at the directory.
type Result string

const (
	// ResultLoaded means that a set was compiled and is served from now on.
	ResultLoaded Result = "loaded"
	// ResultRejected means that the file could not be used, or is missing.
	ResultRejected Result = "rejected"
	// ResultUnchanged means that the directory has not changed since the last look.
	ResultUnchanged Result = "unchanged"
)

// Event is the outcome of one look at the directory, for an observer.
type Event struct {
	Result Result
	// Reason is the reason in State from now on.
	Reason Reason
	// Set is the new set if Result is ResultLoaded, else nil. It may be the same set as
	// before, with a higher revision.
	Set *profile.Set
	// Revision is the revision in the signed statement of Set, 0 if no signature is needed.
	Revision int64
	// Kept reports whether the event is about the set that an earlier process stored, and not
	// about the directory.
	Kept bool
	// Withdrawn are the profiles that were served and are out of service with Set.
	Withdrawn []Withdrawn
	// Problems are the problems of the file. A set that is loaded may have problems.
	Problems profile.Problems
	// Err is the reason why the set could not be read or was refused as a whole, or nil.
	Err error
}
