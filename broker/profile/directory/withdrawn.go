// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// withdrawn returns the profiles that are out of service in the next set, and that the current
// set or an earlier set has served.
func (s *Source) withdrawn(next *profile.Set, now time.Time) []Withdrawn {
	var out []Withdrawn
	for _, before := range s.State().Withdrawn {
		if _, refused := next.Refused(before.Profile); refused {
			out = append(out, before)
		}
	}
	current := s.current.Load()
	if current == nil {
		return out
	}
	for _, name := range current.Names() {
		if _, refused := next.Refused(name); refused {
			out = append(out, Withdrawn{name, now})
		}
	}
	return out
}
