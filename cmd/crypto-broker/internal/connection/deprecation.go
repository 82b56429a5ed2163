// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"io"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// Deprecation is the deprecation of a profile in the form that commands print.
type Deprecation struct {
	ReplacedBy      string `json:"replacedBy,omitempty"`
	DeprecatedSince string `json:"deprecatedSince,omitempty"`
	RemoveAfter     string `json:"removeAfter,omitempty"`
	Reason          string `json:"reason,omitempty"`
}

// DeprecationOf returns the deprecation in a reply, or nil.
func DeprecationOf(metadata *v1.Metadata) *Deprecation {
	d := metadata.GetDeprecation()
	if d == nil {
		return nil
	}
	return &Deprecation{d.GetReplacedBy(), d.GetDeprecatedSince(), d.GetRemoveAfter(), d.GetReason()}
}

// String continues the sentence that begins with "deprecated".
func (d *Deprecation) String() string {
	var text string
	for _, part := range []struct{ before, value string }{
		{" since ", d.DeprecatedSince}, {", may be removed after ", d.RemoveAfter}, {", use ", d.ReplacedBy}, {": ", d.Reason},
	} {
		if part.value != "" {
			text += part.before + part.value
		}
	}
	return text
}

// WarnDeprecated prints a warning if the profile of a reply is deprecated.
func WarnDeprecated(to io.Writer, metadata *v1.Metadata) {
	if d := DeprecationOf(metadata); d != nil {
		fmt.Fprintf(to, "warning: profile %q is deprecated%s\n", metadata.GetDeprecation().GetProfile(), d)
	}
}
