// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Identity is what a socket says about those who call through it.
type Identity struct {
	// Name names the container that calls. It is empty where one socket is for all callers.
	Name string
	// Shared reports whether others can call through this socket.
	Shared bool
	// allowed are the profiles that the caller may use, nil for all.
	allowed map[string]struct{}
}

// identity of a caller, made once for each socket.
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

// MayUse reports whether the caller may use a profile at all. The profile itself may say
// more.
func (i *Identity) MayUse(name string) bool {
	if i.allowed == nil {
		return true
	}
	_, listed := i.allowed[name]
	return listed
}

// validateProfiles checks the option Profiles.
func (o *Options) validateProfiles() error {
	for _, caller := range slices.Sorted(maps.Keys(o.Profiles)) {
		if !slices.Contains(o.Callers, caller) {
			return fmt.Errorf("profiles of the caller %q: expected one of the callers, which are %q", caller, o.Callers)
		}
		names := o.Profiles[caller]
		if len(names) == 0 {
			return fmt.Errorf("profiles of the caller %q: found none, expected at least one; leave the caller out to allow it all", caller)
		}
		for i, name := range names {
			switch {
			case name == "" || len(name) > profile.MaxNameLength:
				return fmt.Errorf("profiles of the caller %q: a name has %d bytes, expected 1 to %d", caller, len(name), profile.MaxNameLength)
			case slices.Contains(names[:i], name):
				return fmt.Errorf("profiles of the caller %q: %q is named twice", caller, name)
			}
		}
	}
	return nil
}
