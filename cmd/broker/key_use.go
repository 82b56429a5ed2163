// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// keyUse warns of calls that the broker will refuse because profiles name keys that it does not
// have or cannot use. It checks whenever the profiles or the keys change.
type keyUse struct {
	logger *slog.Logger
	keys   atomic.Pointer[keys.Directory]
	set    atomic.Pointer[profile.Set]
}

// useKeys begins to check with the keys of a directory.
func (u *keyUse) useKeys(directory *keys.Directory) {
	u.keys.Store(directory)
	u.keysChanged()
}

// useSet checks with another set of profiles from now on.
func (u *keyUse) useSet(set *profile.Set) {
	u.set.Store(set)
	if u.keys.Load() != nil {
		u.warnOfUnlisted(set)
	}
	u.keysChanged()
}

// warnOfUnlisted logs, in one line, the profiles without KeyIds: with earlier brokers,
// requests with such a profile could name any key. It leaves out profiles whose keys are
// in a key manager.
func (u *keyUse) warnOfUnlisted(set *profile.Set) {
	var unlisted []string
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		lacks := func(policy *keyrules.Policy) bool {
			_, external := policy.Manager()
			return !policy.ByReference() && !external
		}
		if p.Cipher() != nil && lacks(p.Cipher().Keys()) || p.Signature() != nil && lacks(p.Signature().Keys()) {
			unlisted = append(unlisted, name)
		}
	}
	if len(unlisted) == 0 {
		return
	}
	u.logger.Warn("profiles without KeyIds reach no key of the key directory: their requests must contain the key, and the broker refuses a key id",
		"profiles", unlisted[:min(len(unlisted), maxLoggedProblems)], "more", max(0, len(unlisted)-maxLoggedProblems))
}

// keysChanged warns of keys that a profile lists but cannot use.
func (u *keyUse) keysChanged() {
	directory, set := u.keys.Load(), u.set.Load()
	if directory == nil || set == nil {
		return
	}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		if policy := p.Certificate(); policy != nil {
			u.warnOf(directory, name, profile.OpSignCertificate, policy.Keys(), "there is no certificate beside it, expected the issuer's certificate", func(key *keys.Key) bool {
				return len(key.Certificates()) == 0
			})
		}
		if policy := p.Signature(); policy != nil {
			u.warnOf(directory, name, profile.OpSignData, policy.Keys(), "it belongs to a certificate authority, expected a key that signs no certificates", (*keys.Key).OfAuthority)
		}
	}
}

func (u *keyUse) warnOf(directory *keys.Directory, name string, operation profile.Operation, policy *keyrules.Policy, why string, useless func(*keys.Key) bool) {
	if _, external := policy.Manager(); external {
		return
	}
	for _, id := range policy.IDs() {
		// Missing and bad keys are logged elsewhere.
		if key, err := directory.Key(context.Background(), keys.Name{ID: id}); err == nil && useless(key) {
			u.logger.Warn("a profile lists a key that it cannot use", "profile", name, "operation", operation.String(), "key", id, "problem", why)
		}
	}
}
