// SPDX-License-Identifier: Apache-2.0

// Package text has the words and formats that commands of the plugin share.
package text

import (
	"fmt"
	"strings"
)

// Plugin is the command line of the plugin.
const Plugin = "kubectl crypto-broker"

// TimeFormat is the format of times in sentences.
const TimeFormat = "2006-01-02 15:04:05 MST"

// Count returns a number with its noun: "1 profile", "2 profiles". more is the plural if it is
// irregular.
func Count(n int, one string, more ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(more) > 0:
		return fmt.Sprintf("%d %s", n, more[0])
	default:
		return fmt.Sprintf("%d %ss", n, one)
	}
}

// ShortDigest returns the beginning of a digest, long enough to compare.
func ShortDigest(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}
