// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"
	"strings"
)

// List returns allowed values as text for a message: `"a", "b" or "c"`.
func List(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

// DidYouMean returns `; did you mean "x"?` if found is probably a misspelling of an allowed
// value, and otherwise the empty string.
func DidYouMean(found string, allowed []string) string {
	if near := Nearest(found, allowed); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the allowed value for which found is most likely a misspelling, or the
// empty string if no value is near. It compares found if it has at most 128 bytes.
func Nearest(found string, allowed []string) string {
	if len(found) > maxMisspelt {
		return ""
	}
	best, bestDistance := "", 3
	for _, candidate := range allowed {
		d := distance(strings.ToLower(found), strings.ToLower(candidate))
		if d < bestDistance && 3*d <= len(candidate)+1 {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions, substitutions and swaps of neighbours
// that turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}

// Excerpt returns the first 64 bytes of a text in quotes, for a message.
func Excerpt(found string) string {
	const longest = 64
	if len(found) <= longest {
		return fmt.Sprintf("%q", found)
	}
	return fmt.Sprintf("%q… (%d bytes)", found[:longest], len(found))
}
