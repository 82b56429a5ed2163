// SPDX-License-Identifier: Apache-2.0

package algorithm

// Session is a version of the protocol of encrypted sessions. A version fixes the derivation of the
// key and what is authenticated. The zero value is not a version.
type Session uint8

// The versions of the protocol. Versions 1 and 2 have one key for requests and replies. The native
// versions agree on keys with HPKE (RFC 9180), and a key of the profile signs the server's share.
const (
	SessionV1 Session = iota + 1
	SessionV2
	SessionHPKEP256
	SessionHPKEXWing
)

// The names of the key agreement of versions 1 and 2, and of the cipher of all versions, as messages
// of the protocol have them: ECDH on P-256 (NIST SP 800-56A Rev. 3) with HKDF-SHA256 (RFC 5869), and
// AES-256-GCM with random IVs (NIST SP 800-38D).
const (
	SessionKeyAgreement = "ECDH_P256"
	SessionCipher       = "A256GCM"
)

// sessionRow is the row of a version in the registry.
type sessionRow struct {
	name     string
	approval Approval
	since    Format
	// strength is the strength of the key agreement in bits, which is the weakest part apart from the signature. limit describes it.
	strength int
	limit    string
	// agreement is the name of the key agreement in messages of the protocol.
	agreement string
	kem       KEM
}

func (r sessionRow) entry() (string, Format) { return r.name, r.since }

// KEM is the identifier of a key encapsulation mechanism of HPKE. The zero value is not one.
type KEM uint16

// The key encapsulation mechanisms of sessions: DHKEM(P-256, HKDF-SHA256) (RFC 9180, section 7.1),
// and MLKEM768-X25519 (draft-ietf-hpke-pq), also known as X-Wing. NoKEM is the value of versions
// that do not use HPKE.
const (
	DHKEMP256 KEM = 0x0010
	XWing     KEM = 0x647a
	NoKEM     KEM = 0xffff
)

// NIST SP 800-56C Rev. 2, section 5, approves HKDF for the key agreement. The combiner of X-Wing
// hashes the two secrets without the counter of the one-step derivation there (section 4), so it
// is not approved, although module v1.0.0 computes it. Its authors claim the strength.
var sessions = [...]sessionRow{
	SessionV1:        {"session-v1", Approved, Format1, 128, "ECDH P-256", SessionKeyAgreement, NoKEM},
	SessionV2:        {"session-v2", Approved, Format1, 128, "ECDH P-256", SessionKeyAgreement, NoKEM},
	SessionHPKEP256:  {"session-hpke-p256", Approved, Format1, 128, "ECDH P-256", "HPKE_P256", DHKEMP256},
	SessionHPKEXWing: {"session-hpke-x-wing", NotApproved, Format1, 128, "MLKEM768-X25519", "HPKE_XWING", XWing},
}

// Sessions returns the names of all versions.
func Sessions() []string { return namesOf(sessions[:]) }

// FindSession returns the version with this name. Upper and lower case do not matter.
func FindSession(name string) (Session, bool) { return find[Session](sessions[:], name) }

// String returns the name that profiles and replies have, in lower case.
func (s Session) String() string { return sessions[s].name }

// Approval returns the verdict of FIPS 140-3 on sessions of the version.
func (s Session) Approval() Approval { return sessions[s].approval }

// Strength returns the strength of the key agreement in bits. limit describes it, for messages.
func (s Session) Strength() (bits int, limit string) { return sessions[s].strength, sessions[s].limit }

// IsNative reports whether the version agrees on keys with HPKE, and the server signs its share.
func (s Session) IsNative() bool { return sessions[s].kem != NoKEM }

// KEM returns the key encapsulation mechanism, NoKEM if the version does not use HPKE.
func (s Session) KEM() KEM { return sessions[s].kem }

// Agreement returns the name of the key agreement in messages of the protocol.
func (s Session) Agreement() string { return sessions[s].agreement }

// NativeSession returns the native version with a key agreement. Upper and lower case matter.
func NativeSession(agreement string) (Session, bool) {
	for i, row := range sessions {
		if row.name != "" && row.kem != NoKEM && row.agreement == agreement {
			return Session(i), true
		}
	}
	return 0, false
}

// SessionFormat returns the first version of the profile format that has the version of the
// protocol with this name. It is Format0 for an empty name, and the newest version for an unknown
// name.
func SessionFormat(name string) Format { return formatOf(sessions[:], name) }
