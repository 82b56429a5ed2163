// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Identity is the identity of the caller of a socket.
type Identity struct {
	// Name is the name of the container that calls. It is empty if one socket is for all
	// callers.
	Name string
	// Shared reports whether other callers can call through this socket as well.
	Shared bool
	// allowed are the profiles that the caller may use. It is nil if the caller may use all.
	allowed map[string]struct{}
}

// identity returns the identity of a caller. Listen makes it once for each socket.
func (o *Options) identity(caller string) Identity {
	made := Identity{Name: caller, Shared: o.Shared}
	if names, listed := o.Profiles[caller]; listed {
		made.allowed = make(map[string]struct{}, len(names))
		for _, name := range names {
			made.allowed[name] = struct{}{}
		}
	}
	return made
}

// NewIdentity returns the identity of a caller that has no socket, because it is a part of the
// broker. It may use only the given profiles.
func NewIdentity(name string, profiles ...string) Identity {
	o := Options{Profiles: map[string][]string{name: profiles}}
	return o.identity(name)
}

// MayUse reports whether the options of the broker let the caller use a profile. The
// profile itself may restrict its callers further.
func (i *Identity) MayUse(name string) bool {
	if i.allowed == nil {
		return true
	}
	_, listed := i.allowed[name]
	return listed
}

// validateProfiles returns what is wrong with Options.Profiles.
func (o *Options) validateProfiles() error {
	for _, caller := range slices.Sorted(maps.Keys(o.Profiles)) {
		if !slices.Contains(o.Callers, caller) {
			return fmt.Errorf("profiles of the caller %q: expected one of the broker's callers %q", caller, o.Callers)
		}
		names := o.Profiles[caller]
		if len(names) == 0 {
			return fmt.Errorf("profiles of the caller %q: found none, expected at least one; leave the caller out to allow all profiles", caller)
		}
		for i, name := range names {
			switch {
			case name == "" || len(name) > profile.MaxNameLength:
				return fmt.Errorf("profiles of the caller %q: found a name of %d bytes, expected 1 to %d", caller, len(name), profile.MaxNameLength)
			case slices.Contains(names[:i], name):
				return fmt.Errorf("profiles of the caller %q: %q is named twice", caller, name)
			}
		}
	}
	return nil
}
