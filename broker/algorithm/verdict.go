// SPDX-License-Identifier: Apache-2.0

package algorithm

// Approval is the verdict of FIPS 140-3 on an algorithm in the Go Cryptographic Module
// v1.0.0. The zero value is not a verdict and counts as not approved.
type Approval uint8

const (
	// Approved means that the standard approves the algorithm, and the module has it.
	Approved Approval = iota + 1
	// NotApproved means that the standard does not approve the algorithm.
	NotApproved
	// NotInModule means that the validated module does not have the algorithm.
	NotInModule
)

// Objection returns why an algorithm is not approved, as the second half of a sentence: "which
// FIPS 140-3 does not approve". It is empty for Approved.
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

// Format is the first version of the profile format that has an algorithm. The zero value is
// not a version.
type Format uint8

const (
	// Format0 is the format that released brokers read.
	Format0 Format = iota + 1
	// Format1 is the version after Format0.
	Format1
	// Format2 is the version after Format1. No algorithm needs it.
	Format2
)

// newest is the version that an unknown algorithm needs. So a profile with it is not written
// for brokers that may overlook it.
const newest = Format2

// Version returns the number of the version in profile files, from 0.
func (f Format) Version() int { return int(f) - 1 }
