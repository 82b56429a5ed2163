// SPDX-License-Identifier: Apache-2.0

package unixsocket_test

import (
	"strings"
	"testing"
)

func TestProfilesOfCallersThatCannotBeAreNamed(t *testing.T) {
	for sentence, test := range map[string]struct {
		profiles map[string][]string
		want     string
	}{
		"of a caller that is none": {map[string][]string{"web": {"A"}}, `profiles of the caller "web": expected one of the broker's callers ["app" "side"]`},
		"none at all":              {map[string][]string{"app": {}}, `profiles of the caller "app": found none, expected at least one; leave the caller out to allow all profiles`},
		"without a name":           {map[string][]string{"app": {"A", ""}}, `profiles of the caller "app": found a name of 0 bytes, expected 1 to 64`},
		"with a name too long":     {map[string][]string{"app": {strings.Repeat("n", 65)}}, `profiles of the caller "app": found a name of 65 bytes, expected 1 to 64`},
		"twice the same":           {map[string][]string{"app": {"A", "A"}}, `profiles of the caller "app": "A" is named twice`},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := options(t.TempDir(), "app", "side")
			o.Profiles = test.profiles
			if err := o.Validate(); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
