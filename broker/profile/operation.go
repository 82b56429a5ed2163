// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// Operation is an operation that a profile can offer.
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

	// OperationCount is the number of operations.
	OperationCount = int(iota)
)

// String returns the operation's name as it is on the wire, in metrics and in records, such
// as "HashData".
func (o Operation) String() string { return operations[o].Name }

// Row returns the row of the operation in the table of operations.
func (o Operation) Row() OperationRow { return operations[o] }

// Opens reports whether the operation decrypts or unwraps with a key. A key pair that only signs cannot
// do that.
func (o Operation) Opens() bool { return o.Row().KeyTasks.Has(DecryptWithKey | UnwrapWithKey) }

// FindOperation returns the operation with this exact name.
func FindOperation(name string) (Operation, bool) {
	i := slices.IndexFunc(operations[:], func(row OperationRow) bool { return row.Name == name })
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

// policies has the policy of each section, nil if the profile does not have the section.
type policies struct {
	hash        *HashPolicy
	certificate *CertificatePolicy
	cipher      *CipherPolicy
	signature   *SignaturePolicy
	dataKeys    *DataKeyPolicy
	session     *SessionPolicy
}

// section is a field of API: the policy of one operation, or of an operation and its inverse. One
// file, operation_….go, has the type and its methods.
type section interface {
	// validate reports values that the section cannot have.
	validate(v validator, at yamlfile.Place)
	// format is the version of the profile format that the section needs.
	format() algorithm.Format
	// compile adds the policy of a valid section to a profile.
	compile(c *Compiled, o compileOptions)
	// judge returns a judgement on each operation of a valid section, in the order of its row.
	judge() []judgement
	// warn warns of values in a valid section that have no effect. manager is the key manager of
	// the profile, or nil.
	warn(w warner, at yamlfile.Place, p *Profile, manager *KMS)
	// listedKeys returns the keys of the broker that the section lists.
	listedKeys() []keyrules.ID
}

// judgement describes one operation of a profile, as far as no call is needed to know it.
type judgement struct {
	// algorithm is the name that replies have.
	algorithm string
	// parts are the strengths of all algorithms and keys of the operation, at least one.
	parts []Strength
	// objection says why FIPS 140-3 does not approve the operation. It is empty if FIPS 140-3
	// approves it.
	objection string
}

// strength returns the strength of the operation's weakest part.
func (j judgement) strength(operation string) Strength {
	weakest := slices.MinFunc(j.parts, func(a, b Strength) int { return a.Bits - b.Bits })
	weakest.Operation = operation
	return weakest
}

// policy is a compiled section.
type policy interface {
	// effect returns the effect of the policy on calls with a use of one of the section's
	// operations, and the reason.
	effect(u Use) (Effect, string)
	// extremes returns uses that an operation of the section allows. If the change of a
	// profile has no effect on all of them, it has no effect on any use.
	extremes(op Operation) []Use
	// Keys returns which keys of the broker may be used. It is nil if none may.
	Keys() *keyrules.Policy
}

// SectionRow is a row of the table of sections: a field of [API] with the operations that it
// offers.
type SectionRow struct {
	// Name is the field of API, such as "EncryptData".
	Name string
	// Operations are the operations that the section offers, such as EncryptData and
	// DecryptData.
	Operations []OperationRow
	// Refusals are the codes of gRPC, such as "NOT_FOUND", with which the broker refuses a call
	// of these operations because of the request, the profile or a key. They have the order of
	// the table on the page of the operations in docs/operations.
	Refusals []string
	// of returns the section of a profile, or nil if it has none.
	of func(*API) section
	// policy returns the compiled section of a profile that has it.
	policy func(*Compiled) policy
	// primitives and objection are [Use.Primitives] and [Use.Objection] for uses of these
	// operations.
	primitives func(Use) (halves [][]algorithm.Primitive, known bool)
	objection  func(Use) string
}

// Names returns the names of the section's operations.
func (r SectionRow) Names() (names []string) {
	for _, operation := range r.Operations {
		names = append(names, operation.Name)
	}
	return names
}

// OperationRow has the properties of an operation that do not depend on a profile.
type OperationRow struct {
	Operation Operation
	// Name is the name on the wire, in metrics and in records.
	Name string
	// Quick reports whether a call with a small input takes microseconds and waits for
	// nothing. The goroutine that receives such a call serves it.
	Quick bool
	// KeyTasks are the tasks that the operation does with keys of the broker. It is 0 if it uses
	// no keys.
	KeyTasks KeyTasks
	// Newest reports whether the operation uses the newest version of a key. Then a request names
	// only the id of the key.
	Newest bool
	// Agrees reports whether the operation agrees on a key with the client. Audit records count
	// that as a use of a key.
	Agrees bool
	// HasFormat reports whether a use of the operation has a format of signatures.
	HasFormat bool
	// Functions are the operation's functions in CycloneDX 1.6
	// (cryptoProperties.algorithmProperties.cryptoFunctions).
	Functions []string
}

// KeyTasks is a set of tasks that can be done with a key of the broker.
type KeyTasks uint8

// The tasks. If a key manager has the key, the key manager does them.
const (
	// DescribeKey reads the public properties of the key. All operations with keys need it.
	DescribeKey KeyTasks = 1 << iota
	SignWithKey
	EncryptWithKey
	DecryptWithKey
	WrapWithKey
	UnwrapWithKey
)

// Has reports whether the set has at least one of the tasks.
func (t KeyTasks) Has(some KeyTasks) bool { return t&some != 0 }

// Offered reports whether a profile has the section.
func (r SectionRow) Offered(a *API) bool { return r.of(a) != nil }

// keyRefusals are the refusals of operations with keys.
var keyRefusals = []string{"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "PERMISSION_DENIED", "UNAVAILABLE"}

// sections is the table of sections, in the order of the fields of API.
var sections = [...]SectionRow{hashDataRow, signCertificateRow, encryptDataRow, signDataRow, dataKeysRow, sessionRow}

// operations is the table of operations, and sectionOfOperation has the index of each one's
// section.
var operations, sectionOfOperation = func() (rows [OperationCount]OperationRow, at [OperationCount]int) {
	for i, section := range sections {
		for _, row := range section.Operations {
			rows[row.Operation], at[row.Operation] = row, i
		}
	}
	return rows, at
}()

// Sections returns the table of sections. The caller must not change it.
func Sections() []SectionRow { return sections[:] }

// sectionOf converts a pointer to a section. It returns nil for a nil pointer.
func sectionOf[S any, P interface {
	*S
	section
}](s P) section {
	if s == nil {
		return nil
	}
	return s
}

// Section returns the field of a profile that offers an operation, such as "API.EncryptData" for
// DecryptData. It is empty if there is no such operation.
func Section(operation string) string {
	op, known := FindOperation(operation)
	if !known {
		return ""
	}
	return "API." + sections[sectionOfOperation[op]].Name
}

// ListedKeys returns the keys of the broker that a profile lists for an operation.
func (a *API) ListedKeys(op Operation) []keyrules.ID {
	if s := sections[sectionOfOperation[op]].of(a); s != nil {
		return s.listedKeys()
	}
	return nil
}

// Keys returns which keys of the broker an operation may use. It is nil if none may be used. Keys
// reports false if the profile does not offer the operation, or if the operation uses no keys.
func (c *Compiled) Keys(op Operation) (keys *keyrules.Policy, offered bool) {
	if c.Assessment(op) == nil || op.Row().KeyTasks == 0 {
		return nil, false
	}
	return sections[sectionOfOperation[op]].policy(c).Keys(), true
}

// FormatVersion returns the oldest version of the profile format that can express
// the profile. A broker that reads only older versions would overlook a field
// that restricts, so the profile must not be rendered for it. A new field needs no
// version after version 1: brokers that read version 1 refuse a profile with a field
// that they do not know, and only that profile.
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

// formatOf returns Format1 if a field of that version is used, and Format0 otherwise.
func formatOf(used bool) algorithm.Format {
	if used {
		return algorithm.Format1
	}
	return algorithm.Format0
}

// NamesKeyProviders reports whether one of the profiles lists a key of a key provider, whose id
// is <provider>/<id>.
func NamesKeyProviders(profiles []Profile) bool {
	for i := range profiles {
		for _, row := range sections {
			listed := row.of(&profiles[i].API)
			if listed != nil && slices.ContainsFunc(listed.listedKeys(), func(key keyrules.ID) bool { return strings.Index(key.ID, "/") > 0 }) {
				return true
			}
		}
	}
	return false
}
