// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// patternKind is a field that lists patterns. want is the end of the message for a pattern
// that is not valid.
type patternKind struct {
	name     string
	patterns []string
	valid    func(string) bool
	want     string
}

// checkPatterns checks patterns. There has to be at least one if the rule is "patterns", and none
// otherwise. fields names the kinds in the message.
func checkPatterns(r *yamlfile.Report, at yamlfile.Place, rule, fields string, kinds []patternKind) {
	patterns := 0
	for _, kind := range kinds {
		where := at.Field(kind.name)
		if len(kind.patterns) > 0 && rule != "" && !strings.EqualFold(rule, "patterns") {
			r.Add(where, at, "is only allowed where Rule is \"patterns\", found Rule %s", yamlfile.Excerpt(rule))
		}
		for i, pattern := range kind.patterns {
			patterns++
			if !kind.valid(pattern) {
				r.Add(where.Index(i), where, "found %s, expected %s", yamlfile.Excerpt(pattern), kind.want)
			}
		}
	}
	if strings.EqualFold(rule, "patterns") && patterns == 0 {
		r.Add(at, at, "has Rule \"patterns\" and no pattern, expected at least one in %s", fields)
	}
}

// is returns a function that reports whether a text is a valid pattern.
func is[P any](parse func(string) (P, bool)) func(string) bool {
	return func(text string) bool {
		_, ok := parse(text)
		return ok
	}
}

// checked returns the pattern of a text that Check has found to be valid.
func checked[P any](pattern P, valid bool) P {
	if !valid {
		panic("extensions: policy of a rule that was not checked")
	}
	return pattern
}
