// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// ServedSet is a set of profiles, with what calls need of each profile.
type ServedSet struct {
	Set      *profile.Set
	Profiles map[string]ServedProfile
	// audits is whether any profile has calls recorded.
	audits bool
	// revision is the revision of the set, 0 if it is not signed.
	revision int64
}

// ServedProfile is a profile with what calls need beside it.
type ServedProfile struct {
	*profile.Compiled
	Counters *telemetry.Counters
	// warning is the warning of a deprecated profile as an encoded field of metadata, nil
	// if the profile is not deprecated.
	warning []byte
	// refusals are the reasons why a broker that requires FIPS 140-3 refuses operations,
	// nil if no operation is refused.
	refusals *[profile.OperationCount]string
}

// Use serves a set of profiles with its revision from now on. Requests that have begun finish with
// the set that they began with.
func (h *Handlers) Use(set *profile.Set, revision int64) {
	counters := h.Metrics.Profiles(set)
	next := &ServedSet{Set: set, revision: revision, Profiles: make(map[string]ServedProfile, set.Len())}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		next.audits = next.audits || p.Audit().Level != profile.AuditNone
		next.Profiles[name] = ServedProfile{p, counters[name], warningOf(p), refusalsOf(p)}
	}
	h.Served.Store(next)
	h.DataKeys.Forget() // for a profile may not allow any more what it allowed
	h.Sessions.Keep(next.SessionPolicy)
}

// IsServing reports whether Use has been called.
func (h *Handlers) IsServing() bool { return h.Served.Load() != nil }
