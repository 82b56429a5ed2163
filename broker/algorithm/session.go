// SPDX-License-Identifier: Apache-2.0

package algorithm

import "strings"

// Session is a version of the protocol of encrypted sessions. A version fixes the derivation of the
// key and what is authenticated. The zero value is not a version.
type Session uint8

// The versions of the protocol. Both have one key for requests and replies.
const (
	SessionV1 Session = iota + 1
	SessionV2
)

// The names of the key agreement and the cipher of both versions, as messages of the protocol have
// them: ECDH on P-256 (NIST SP 800-56A Rev. 3) with HKDF-SHA256 (RFC 5869), and AES-256-GCM with
// random IVs (NIST SP 800-38D).
const (
	SessionKeyAgreement = "ECDH_P256"
	SessionCipher       = "A256GCM"
)

// sessionRow is a version with all that is known about it.
type sessionRow struct {
	name     string
	approval Approval
	since    Format
	// strength is the strength of the key agreement in bits, which is the weakest part.
	strength int
}

// NIST SP 800-56C Rev. 2, section 5, approves HKDF for the key agreement.
var sessions = [...]sessionRow{
	SessionV1: {"session-v1", Approved, Format1, 128},
	SessionV2: {"session-v2", Approved, Format1, 128},
}

// Sessions returns the names of all versions.
func Sessions() []string {
	var names []string
	for _, row := range sessions[1:] {
		names = append(names, row.name)
	}
	return names
}

// FindSession returns the version with this name. Upper and lower case do not matter.
func FindSession(name string) (Session, bool) {
	for i, row := range sessions {
		if row.name != "" && strings.EqualFold(row.name, name) {
			return Session(i), true
		}
	}
	return 0, false
}

// String returns the name that profiles and replies have, in lower case.
func (s Session) String() string { return sessions[s].name }

// Approval returns the verdict of FIPS 140-3 on sessions of the version.
func (s Session) Approval() Approval { return sessions[s].approval }

// Strength returns the strength of sessions in bits. limit describes the weakest part, for messages.
func (s Session) Strength() (bits int, limit string) { return sessions[s].strength, "ECDH P-256" }

// SessionFormat returns the first version of the profile format that has the version of the
// protocol with this name. It is Format0 for an empty name, and the newest version for an unknown
// name.
func SessionFormat(name string) Format {
	if name == "" {
		return Format0
	}
	if s, known := FindSession(name); known {
		return sessions[s].since
	}
	return newest
}
