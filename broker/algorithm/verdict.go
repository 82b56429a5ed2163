// SPDX-License-Identifier: Apache-2.0

package algorithm

// Approval is the verdict of FIPS 140-3 on an algorithm, as the Go
// Cryptographic Module v1.0.0 was validated. The zero value is no verdict.
type Approval uint8

const (
	// Approved means: the standard approves the algorithm, and the module has it.
	Approved Approval = iota + 1
	// NotApproved means: the standard does not approve the algorithm.
	NotApproved
	// NotInModule means: the validated module does not have the algorithm.
	NotInModule
)

// Objection is the second half of a sentence that says why an algorithm is not
// approved, such as "which FIPS 140-3 does not approve"; empty for Approved.
// Whatever has no verdict is not approved.
func (a Approval) Objection() string {
	switch a {
	case Approved:
		return ""
	case NotInModule:
		return "which the validated module does not have"
	default:
		return "which FIPS 140-3 does not approve"
	}
}

// Format is the version of the profile format that an algorithm came with. The
// zero value is no version.
type Format uint8

const (
	// Format0 is the format that released brokers read.
	Format0 Format = iota + 1
	// Format1 is the one after it.
	Format1
)

// newest is the version that an unknown algorithm is taken to need, so that a
// profile with it is not written for brokers that may overlook it.
const newest = Format1

// Version is the number that profile files have, from 0.
func (f Format) Version() int { return int(f) - 1 }
