// SPDX-License-Identifier: Apache-2.0

// Package engine computes what the operations of a profile ask for, by Go's
// standard library, ML-DSA and CMS apart. It knows no transport and no files; what is allowed
// was decided by package profile.
package engine

// Operation is one of the things a profile can offer.
type Operation uint8

// The operations, named as in profiles and on the wire.
const (
	HashData Operation = iota
	SignCertificate
	EncryptData
	DecryptData
	SignData
	VerifyData

	// Operations is how many there are.
	Operations = int(iota)
)

var operationNames = [Operations]string{
	HashData:        "HashData",
	SignCertificate: "SignCertificate",
	EncryptData:     "EncryptData",
	DecryptData:     "DecryptData",
	SignData:        "SignData",
	VerifyData:      "VerifyData",
}

// String returns the operation's name, such as "HashData".
func (o Operation) String() string { return operationNames[o] }
