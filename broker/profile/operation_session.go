// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// sessionRow are the operations on encrypted sessions.
var sessionRow = SectionRow{
	Name: "Session",
	Operations: []OperationRow{
		{Operation: OpInitSession, Name: "InitSession", KeyTasks: DescribeKey | SignWithKey, Agrees: true, Functions: []string{"keyderive"}},
		{Operation: OpOpenRequest, Name: "OpenRequest", Quick: true, Functions: []string{"decrypt"}},
		{Operation: OpSealReply, Name: "SealReply", Quick: true, Functions: []string{"encrypt"}},
		{Operation: OpCloseSession, Name: "CloseSession", Quick: true, Functions: []string{"other"}},
		{Operation: OpRekeySession, Name: "RekeySession", Quick: true, Agrees: true, Functions: []string{"keyderive"}},
	},
	Refusals:   []string{"INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED", "UNAVAILABLE"},
	of:         func(a *API) section { return sectionOf(a.Session) },
	policy:     func(c *Compiled) policy { return c.session },
	primitives: sessionPrimitives,
	objection: func(u Use) string {
		session, known := algorithm.FindSession(u.Algorithm)
		if !known {
			return "" // a session that had ended was closed
		}
		return cmp.Or(objection(u.Algorithm, session.Approval()), keyObjection(u.Keys[0]))
	},
}

// Session is the policy of encrypted sessions.
type Session struct {
	// Protocols are the versions of the protocol that clients may speak.
	Protocols []string `yaml:"Protocols"`
	// KeyAgreementAlg and EncryptAlg are the algorithms, by their names in the protocol. The
	// native versions fix their key agreement, so KeyAgreementAlg is for versions 1 and 2.
	KeyAgreementAlg string `yaml:"KeyAgreementAlg,omitempty"`
	EncryptAlg      string `yaml:"EncryptAlg"`
	// SignAlg, HashAlg and KeyIDs say how the native versions sign the server's share: with one
	// algorithm and one key of the broker.
	SignAlg string        `yaml:"SignAlg,omitempty"`
	HashAlg string        `yaml:"HashAlg,omitempty"`
	KeyIDs  []keyrules.ID `yaml:"KeyIds,omitempty"`
	// MinLifetime and MaxLifetime are Go durations. A client that asks for another lifetime
	// gets the nearest of them.
	MinLifetime string `yaml:"MinLifetime,omitempty"`
	MaxLifetime string `yaml:"MaxLifetime,omitempty"`
	// ClockWindow is a Go duration: the largest difference between the time of a request and the
	// broker's time, in both directions.
	ClockWindow string `yaml:"ClockWindow,omitempty"`
	// MaxMessages is the maximum number of requests that a session may open, and of replies that
	// it may seal.
	MaxMessages int `yaml:"MaxMessages,omitempty"`
	// Store is the place of the sessions: "memory" for the memory of the broker, or "redis". If
	// it is absent, it is "memory".
	Store string `yaml:"Store,omitempty"`
}

// The bounds of a session, and the defaults of a section.
const (
	minSessionLifetime        = time.Minute
	maxSessionLifetime        = time.Hour
	defaultMinSessionLifetime = 5 * time.Minute

	minSessionWindow     = time.Second
	MaxSessionWindow     = 5 * time.Minute
	defaultSessionWindow = 5 * time.Minute

	// MaxSessionMessages is for each direction. NIST SP 800-38D, section 8.3, allows 2^32 random
	// IVs for a key: half of them are for messages that were sealed and never arrived.
	MaxSessionMessages     = 1 << 30
	defaultSessionMessages = 1 << 20

	memoryStore = "memory"
	redisStore  = "redis"
)

func (s *Session) validate(v validator, at yamlfile.Place) {
	s.validateProtocols(v, at)
	s.validateAgreement(v, at)
	s.validateSigning(v, at)
	v.Enum(at.Field("EncryptAlg"), at, s.EncryptAlg, []string{algorithm.SessionCipher})
	shortest, ok := v.sessionTime(at.Field("MinLifetime"), at, s.MinLifetime, minSessionLifetime, maxSessionLifetime)
	longest, also := v.sessionTime(at.Field("MaxLifetime"), at, s.MaxLifetime, minSessionLifetime, maxSessionLifetime)
	shortest, longest = cmp.Or(shortest, defaultMinSessionLifetime), cmp.Or(longest, maxSessionLifetime)
	if ok && also && longest < shortest {
		v.Add(at.Field("MaxLifetime"), at, "is %s, expected at least MinLifetime, which is %s", longest, shortest)
	}
	v.sessionTime(at.Field("ClockWindow"), at, s.ClockWindow, minSessionWindow, MaxSessionWindow)
	if where := at.Field("MaxMessages"); (s.MaxMessages != 0 || v.Present(where)) && !v.Failed[where] && (s.MaxMessages < 1 || s.MaxMessages > MaxSessionMessages) {
		v.Add(where, at, "found %d, expected 1 to %d messages in each direction, because NIST SP 800-38D allows 2^32 random IVs for a key", s.MaxMessages, MaxSessionMessages)
	}
	if s.Store != "" || v.Present(at.Field("Store")) {
		v.Enum(at.Field("Store"), at, s.Store, []string{memoryStore, redisStore})
	}
}

func (s *Session) validateProtocols(v validator, at yamlfile.Place) {
	list := at.Field("Protocols")
	if len(s.Protocols) == 0 {
		v.Required(list, at, "at least one of "+yamlfile.List(algorithm.Sessions()))
	}
	var before []algorithm.Session
	for i, name := range s.Protocols {
		v.Enum(list.Index(i), list, name, algorithm.Sessions())
		protocol, known := algorithm.FindSession(name)
		if known && slices.Contains(before, protocol) {
			v.Add(list.Index(i), list, "the protocol %q is already in the list", protocol)
		}
		before = append(before, protocol)
	}
}

// sessionTime returns a duration, or 0 if it is absent. If the value is not a duration within the
// bounds, it adds a problem and reports false.
func (v validator) sessionTime(at, around yamlfile.Place, found string, shortest, longest time.Duration) (time.Duration, bool) {
	if found == "" && !v.Present(at) {
		return 0, true
	}
	d, ok := v.Duration(at, around, found)
	if ok && (d < shortest || d > longest || d%time.Second != 0) {
		v.Add(at, around, "found %q, expected whole seconds from %s to %s", found, shortest, longest)
		return 0, false
	}
	return d, ok
}

func (s *Session) format() algorithm.Format {
	newest := algorithm.Format1
	for _, name := range s.Protocols {
		newest = max(newest, algorithm.SessionFormat(name))
	}
	return max(newest, algorithm.SignatureFormat(s.SignAlg), algorithm.DigestFormat(s.HashAlg))
}

// Lifetimes returns the shortest and the longest lifetime of a valid section.
func (s *Session) Lifetimes() (shortest, longest time.Duration) {
	return sessionTimeOr(s.MinLifetime, defaultMinSessionLifetime), sessionTimeOr(s.MaxLifetime, maxSessionLifetime)
}

// Window returns the clock window of a valid section.
func (s *Session) Window() time.Duration { return sessionTimeOr(s.ClockWindow, defaultSessionWindow) }

// Messages returns the largest number of messages in each direction.
func (s *Session) Messages() int { return cmp.Or(s.MaxMessages, defaultSessionMessages) }

func sessionTimeOr(text string, absent time.Duration) time.Duration {
	if text == "" {
		return absent
	}
	return wholeSeconds(text, 0)
}

// versions returns the known protocols of the list.
func (s *Session) versions() (all []algorithm.Session) {
	for _, name := range s.Protocols {
		if protocol, known := algorithm.FindSession(name); known {
			all = append(all, protocol)
		}
	}
	return all
}

func (s *Session) compile(c *Compiled, o compileOptions) {
	policy := &SessionPolicy{protocols: s.versions(), window: s.Window(), messages: uint64(s.Messages()), shared: strings.EqualFold(s.Store, redisStore)}
	policy.shortest, policy.longest = s.Lifetimes()
	if s.signs() {
		policy.signing, policy.keyID = s.signature().policy(o), strings.Clone(s.KeyIDs[0].ID)
	}
	c.session = policy
}

// Session returns the policy of encrypted sessions, or nil if the profile does not offer them.
func (c *Compiled) Session() *SessionPolicy { return c.session }

func (s *Session) judge() []judgement {
	var parts []Strength
	objection := ""
	for _, protocol := range s.versions() {
		bits, limit := protocol.Strength()
		parts = append(parts, Strength{Bits: bits, Limit: limit})
		if why := protocol.Approval().Objection(); why != "" && objection == "" {
			objection = "Protocols has " + protocol.String() + ", " + why
		}
	}
	if s.signs() {
		limits := s.signature().policy(compileOptions{}).Signs()
		parts = append(parts, signatureStrength(s.SignAlg, s.HashAlg, limits))
		objection = cmp.Or(objection, signatureObjection(s.SignAlg, s.HashAlg, limits))
	}
	judgements := make([]judgement, len(sessionRow.Operations))
	for i := range judgements {
		judgements[i] = judgement{namesOf(s.versions(), " or "), parts, objection}
	}
	return judgements
}

func (s *Session) listedKeys() []keyrules.ID { return s.KeyIDs }

// SessionPolicy is the compiled policy of encrypted sessions.
type SessionPolicy struct {
	protocols         []algorithm.Session
	shortest, longest time.Duration
	window            time.Duration
	messages          uint64
	shared            bool
	// signing and keyID are the signature policy and the key of the native versions. They are
	// empty without such a version.
	signing *SignaturePolicy
	keyID   string
}

// Allows reports whether clients may speak a version of the protocol.
func (s *SessionPolicy) Allows(protocol algorithm.Session) bool {
	return slices.Contains(s.protocols, protocol)
}

// Protocols returns the names of the allowed versions, for messages.
func (s *SessionPolicy) Protocols() string {
	return namesOf(s.protocols, ", ")
}

// Lifetime returns the lifetime of a session whose client asks for one.
func (s *SessionPolicy) Lifetime(asked time.Duration) time.Duration {
	return min(max(asked, s.shortest), s.longest)
}

// MaxLifetime returns the longest lifetime of a session.
func (s *SessionPolicy) MaxLifetime() time.Duration { return s.longest }

// Window returns the largest difference between the time of a request and the broker's time, in
// both directions.
func (s *SessionPolicy) Window() time.Duration { return s.window }

// Messages returns how many requests a session may open, and how many replies it may seal.
func (s *SessionPolicy) Messages() uint64 { return s.messages }

// Shared reports whether sessions are stored in Redis, where other brokers find them.
func (s *SessionPolicy) Shared() bool { return s.shared }

func (s *SessionPolicy) effect(u Use) (Effect, string) {
	if u.Algorithm == "" { // a session that had ended was closed
		return "", ""
	}
	protocol, known := algorithm.FindSession(u.Algorithm)
	if !known || !s.Allows(protocol) {
		return Refused, u.Algorithm + ", expected " + s.Protocols()
	}
	if u.Operation == OpInitSession && protocol.IsNative() {
		return s.signatureEffect(u)
	}
	return "", ""
}

func (s *SessionPolicy) extremes(op Operation) (all []Use) {
	for _, protocol := range s.protocols {
		u := Use{Operation: op, Algorithm: protocol.String()}
		switch {
		case !protocol.IsNative() && op == OpRekeySession:
		case protocol.IsNative() && op == OpInitSession:
			all = append(all, s.signatureExtremes(u)...)
		default:
			all = append(all, u)
		}
	}
	return all
}

// sessionPrimitives returns the primitives of an operation on sessions. The key of the profile
// signs only at the beginning of a session.
func sessionPrimitives(u Use) (halves [][]algorithm.Primitive, known bool) {
	session, known := algorithm.FindSession(u.Algorithm)
	if !known {
		return nil, u.Algorithm == "" // a session that had ended was closed
	}
	halves = session.Primitives()
	if u.Keys[0] == (UsedKey{}) {
		return halves, true
	}
	key, known := keyPrimitive(u.Keys[0])
	for i := range halves {
		halves[i] = append(halves[i], key)
	}
	return halves, known
}
