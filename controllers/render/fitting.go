// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// formSize is the maximum number of bytes of a profile file in addition to its profiles.
const formSize = 256

// fitting returns the candidates that fit into one set, in their order, and refuses the others.
// size is the total size of all candidates in bytes. All ClusterCryptoProfiles stay.
// CryptoProfiles stay if they fit, the older ones first. So users who may write the profiles of a
// namespace cannot push ClusterCryptoProfiles out by filling the set.
func fitting(candidates []candidate, size int, result *Result) ([]candidate, error) {
	room := MaxSetSize - formSize
	needed := map[string]int{} // by name of the CryptoProfile
	var own []candidate
	for _, c := range candidates {
		alone, err := Size(c.object, c.spec)
		if err != nil {
			return nil, err
		}
		if c.cluster {
			room -= alone
			continue
		}
		needed[c.object] = alone
		own = append(own, c)
	}
	slices.SortFunc(own, func(a, b candidate) int {
		return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.object, b.object))
	})
	without := map[string]bool{}
	for _, c := range own {
		if needed[c.object] <= room {
			room -= needed[c.object]
			continue
		}
		without[c.object] = true
		result.judge(c, Verdict{
			Reason: v1alpha1.ReasonTooLarge,
			Message: fmt.Sprintf("The %d profiles of the namespace take %d bytes, and a set has at most %d; this one is left out, because ClusterCryptoProfiles and older CryptoProfiles count first.",
				len(candidates), size, MaxSetSize),
		})
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return !c.cluster && without[c.object] }), nil
}

// Size returns the maximum number of bytes of a profile in a profile file. objectName is the
// resource's metadata.name.
func Size(objectName string, spec *v1alpha1.ProfileSpec) (int, error) {
	p, err := Document(objectName, spec)
	if err != nil {
		return 0, err
	}
	data, err := profile.Marshal(&profile.Document{Profiles: []profile.Profile{p}})
	if err != nil {
		return 0, err
	}
	// Beside a profile that needs the map form, each line is indented.
	return len(data) + 2*bytes.Count(data, []byte("\n")), nil
}
