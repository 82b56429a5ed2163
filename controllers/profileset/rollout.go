// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"cmp"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/controllers/rollout"
)

// rollOut marks the verdict of each object that is rolled out, and returns the profiles of the
// set: the profiles for brokers that no rollout has reached, and the new profiles in addition. If
// there is no room for the new profiles, the set has none of them. namespace are the labels of
// the namespace.
func (g *guarded) rollOut(served []profile.Profile, rolling []rollout.Change, namespace map[string]string) []profile.Profile {
	all := slices.Clone(served)
	for _, change := range rolling {
		below := change.Reach(namespace)
		isServed := slices.ContainsFunc(served, func(p profile.Profile) bool { return p.Name == change.Profile.Name })
		if below > 0 && isServed {
			reaching := change.Profile
			reaching.Rollout = &profile.Rollout{Below: below, Digest: change.Digest}
			all = append(all, reaching)
		}
	}
	hasRoom := len(all) == len(served) || size(all) <= render.MaxSetSize
	for _, change := range rolling {
		g.update(change.Source, func(v *render.Verdict) { v.Rolling, v.NoRoom = change.Digest, !hasRoom })
	}
	if !hasRoom {
		return served
	}
	slices.SortStableFunc(all, func(a, b profile.Profile) int { return cmp.Compare(a.Name, b.Name) }) // the old one first
	return all
}
