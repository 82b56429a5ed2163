// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// Suggestion returns the end of a refusal. It suggests the profile whose name differs from
// found only in upper and lower case, or is empty. It does not suggest a profile that the
// caller may not use, so that the caller does not learn of it. It does not compare names
// more thoroughly, because a refused call has to be cheap.
func (s *Set) Suggestion(ctx context.Context, found string) string {
	caller, conn := flow.PeerOf(ctx)
	near := ""
	for name, p := range s.Profiles {
		if len(name) != len(found) || !strings.EqualFold(name, found) || near != "" && near < name {
			continue
		}
		if conn.MayUse(name) && p.Callers().Allows(caller) {
			near = name
		}
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}
