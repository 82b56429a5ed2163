// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// meant ends a sentence about a name that the caller can't have with the profile
// whose name differs from it by case alone. It names none that the caller may not
// use, of which it is not to learn, and does no more than compare names: a refused
// call costs the broker little.
func (s *ServedSet) meant(c *Call, found string) string {
	near := ""
	for name, p := range s.Profiles {
		if len(name) != len(found) || !strings.EqualFold(name, found) || near != "" && near < name {
			continue
		}
		if policy := p.Callers(); flow.ConnOf(c.Context).MayUse(name) && (policy == nil || policy.Allows(flow.CallerOf(c.Context))) {
			near = name
		}
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}
