// SPDX-License-Identifier: Apache-2.0

package served

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// Set is a set of profiles, with the values that calls need of each profile.
type Set struct {
	*profile.Set
	Profiles map[string]Profile
	// Revision is the revision of the set, 0 if it is not signed.
	Revision int64
	// Audits reports whether any profile records calls.
	Audits bool
}

// Profile is a profile with the values that calls need in addition to it.
type Profile struct {
	*profile.Compiled
	Counters *telemetry.Counters
	// Warning is the warning of a deprecated profile as an encoded field of metadata, nil
	// if the profile is not deprecated.
	Warning []byte
	// refusals are the reasons why a broker that requires FIPS 140-3 refuses operations,
	// nil if no operation is refused.
	refusals *[profile.OperationCount]string
}

// New returns a set with its revision. The counters of each profile count its calls.
func New(set *profile.Set, revision int64, counters map[string]*telemetry.Counters) *Set {
	s := &Set{Set: set, Revision: revision, Profiles: make(map[string]Profile, set.Len())}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		s.Audits = s.Audits || p.Audit().Level != profile.AuditNone
		s.Profiles[name] = Profile{p, counters[name], warningOf(p), refusalsOf(p)}
	}
	return s
}

// Refusal returns the reason why a broker that requires FIPS 140-3 refuses an operation of the
// profile, empty if it does not refuse the operation.
func (p Profile) Refusal(op profile.Operation) string {
	if p.refusals == nil {
		return ""
	}
	return p.refusals[op]
}

// SessionPolicy returns the session policy of a profile of the set for an owner. It is nil if the
// owner may have no sessions.
func (s *Set) SessionPolicy(owner session.Owner) *profile.SessionPolicy {
	p, ok := s.Profiles[owner.Profile]
	if !ok || p.Refusal(profile.OpOpenRequest) != "" || !p.Callers().Allows(owner.Caller) {
		return nil
	}
	return p.Session()
}
