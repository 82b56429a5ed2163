// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// ServedSet is a set of profiles, with what requests need beside each of them.
type ServedSet struct {
	Set      *profile.Set
	Profiles map[string]ServedProfile
}

// ServedProfile is a profile with what its calls need.
type ServedProfile struct {
	*profile.Compiled
	Counters *telemetry.Counters
	// warning is the warning of a deprecated profile as metadata has it, else nil.
	warning []byte
	// refusals say why operations are refused where FIPS 140-3 is required, nil
	// where none is.
	refusals *[profile.OperationCount]string
}

// Use serves a set of profiles from now on. Requests under way finish with the set they
// began with.
func (h *Handlers) Use(set *profile.Set) {
	counters := h.Metrics.Profiles(set)
	next := &ServedSet{Set: set, Profiles: make(map[string]ServedProfile, set.Len())}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		next.Profiles[name] = ServedProfile{p, counters[name], warningOf(p), refusalsOf(p)}
	}
	h.Served.Store(next)
}

// IsServing reports whether there ever was a set of profiles to serve.
func (h *Handlers) IsServing() bool { return h.Served.Load() != nil }
