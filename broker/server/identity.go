// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// identity is what a socket tells of those who call by it, apart from the name.
type identity struct {
	// allowed are the profiles that the caller may use, nil for all.
	allowed map[string]struct{}
	// shared tells that others can call by this socket.
	shared bool
}

// identity of a caller, made once for each socket.
func (o *SocketOptions) identity(caller string) identity {
	made := identity{shared: o.Shared}
	if names, listed := o.Profiles[caller]; listed {
		made.allowed = make(map[string]struct{}, len(names))
		for _, name := range names {
			made.allowed[name] = struct{}{}
		}
	}
	return made
}

// mayUse tells whether the profile is one that the caller of the connection may
// use at all; the profile itself may say more. Without a connection, which cannot
// happen, it may use none.
func (c *callerConn) mayUse(name string) bool {
	if c == nil {
		return false
	}
	if c.allowed == nil {
		return true
	}
	_, listed := c.allowed[name]
	return listed
}

// validateProfiles checks what is said about the profiles of callers.
func (o *SocketOptions) validateProfiles() error {
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
