// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Operation is one of the things that a profile can offer.
type Operation uint8

// The operations, in the order of the table of sections.
const (
	OpHashData Operation = iota
	OpSignCertificate
	OpEncryptData
	OpDecryptData
	OpSignData
	OpVerifyData
	OpGenerateDataKey
	OpWrapKey
	OpUnwrapKey
	OpRewrapKey
	OpGetPublicKey
	OpEncryptStream
	OpDecryptStream
	OpInitSession
	OpOpenRequest
	OpSealReply
	OpCloseSession
	OpRekeySession

	// OperationCount is how many there are.
	OperationCount = int(iota)
)

var operationNames = [OperationCount]string{
	"HashData", "SignCertificate", "EncryptData", "DecryptData", "SignData", "VerifyData",
	"GenerateDataKey", "WrapKey", "UnwrapKey", "RewrapKey", "GetPublicKey",
	"EncryptStream", "DecryptStream",
	"InitSession", "OpenRequest", "SealReply", "CloseSession", "RekeySession",
}

// String returns the operation's name as it is on the wire, in metrics and in records, such
// as "HashData".
func (o Operation) String() string { return operationNames[o] }

// FindOperation returns the operation with this exact name.
func FindOperation(name string) (Operation, bool) {
	i := slices.Index(operationNames[:], name)
	return Operation(max(0, i)), i >= 0
}

// API holds one entry for each operation the profile offers. An operation
// that is absent is refused at the call.
type API struct {
	HashData        *HashData        `yaml:"HashData,omitempty"`
	SignCertificate *SignCertificate `yaml:"SignCertificate,omitempty"`
	EncryptData     *EncryptData     `yaml:"EncryptData,omitempty"`
	SignData        *SignData        `yaml:"SignData,omitempty"`
	DataKeys        *DataKeys        `yaml:"DataKeys,omitempty"`
	Session         *Session         `yaml:"Session,omitempty"`
}

// policies has the policy of each section, nil where the profile does not have the section.
type policies struct {
	hash        *HashPolicy
	certificate *CertificatePolicy
	cipher      *CipherPolicy
	signature   *SignaturePolicy
	dataKeys    *DataKeyPolicy
	session     *SessionPolicy
}

// section is a field of API: what a profile says about one operation, or about one
// and its inverse. Its type and all that is known of it stand in one file,
// operation_….go.
type section interface {
	// validate reports values that the section cannot have.
	validate(v validator, at yamlfile.Place)
	// format is the version of the profile format that the section needs.
	format() algorithm.Format
	// compile puts the policy of a valid section into a profile.
	compile(c *Compiled, o compileOptions)
	// judge returns a judgement on each operation of a valid section, in the order of
	// SectionRow.Operations.
	judge() []judgement
	// warn warns of values in a valid section that have no effect. manager is the key
	// manager of the profile, nil for none.
	warn(w warner, at yamlfile.Place, p *Profile, manager *KMS)
	// listedKeys returns the keys of the broker that the section lists.
	listedKeys() []KeyID
}

// judgement is what is known of one operation without a call.
type judgement struct {
	// algorithm is the name that replies have.
	algorithm string
	// parts are all that the strength rests on, at least one.
	parts []Strength
	// objection says why FIPS 140-3 does not approve the operation, empty where it
	// does.
	objection string
}

// strength returns the strength of the weakest part.
func (j judgement) strength() Strength {
	return slices.MinFunc(j.parts, func(a, b Strength) int { return a.Bits - b.Bits })
}

// SectionRow is a row of the table of operations.
type SectionRow struct {
	// Name is the field of API, such as "EncryptData".
	Name string
	// Operations are the names of the operations that the section offers, such as
	// "EncryptData" and "DecryptData".
	Operations []string
	// Refusals are the codes of gRPC, such as "NOT_FOUND", with which the broker refuses a
	// call of these operations for what the request, the profile or a key is. They have
	// the order of the table on the page of the operations in docs/operations.
	Refusals []string
	// of returns the section of a profile, nil where it has none.
	of func(*API) section
}

// Offered reports whether a profile has the section.
func (r SectionRow) Offered(a *API) bool { return r.of(a) != nil }

// keyRefusals are the refusals of operations with keys.
var keyRefusals = []string{"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "PERMISSION_DENIED", "UNAVAILABLE"}

// sections is the table of operations, in the order of the fields of API.
var sections = [...]SectionRow{hashDataRow, signCertificateRow, encryptDataRow, signDataRow, dataKeysRow, sessionRow}

// Sections returns the table of operations. The caller must not change it.
func Sections() []SectionRow { return sections[:] }

// sectionOf returns a section, nil instead of a pointer that is nil.
func sectionOf[S any, P interface {
	*S
	section
}](s P) section {
	if s == nil {
		return nil
	}
	return s
}

// Section is the field of a profile that offers an operation, such as
// "API.EncryptData" for DecryptData; empty where there is no such operation.
func Section(operation string) string {
	for _, row := range sections {
		if slices.Contains(row.Operations, operation) {
			return "API." + row.Name
		}
	}
	return ""
}

// FormatVersion returns the oldest version of the profile format that can express
// the profile. A broker that reads only older versions would overlook a field
// that restricts, so the profile must not be rendered for it. A field that comes
// to version 1 does not make another: brokers that read that version refuse a
// profile with a field that they do not know, and that profile alone.
func (p *Profile) FormatVersion() int {
	newest := algorithm.Format0
	switch {
	case p.Rollout != nil:
		newest = algorithm.Format2
	case p.Callers != nil || p.Audit != nil:
		newest = algorithm.Format1
	}
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			newest = max(newest, s.format())
		}
	}
	return newest.Version()
}

// formatOf is Format1 where a field is used that came with it.
func formatOf(used bool) algorithm.Format {
	if used {
		return algorithm.Format1
	}
	return algorithm.Format0
}
