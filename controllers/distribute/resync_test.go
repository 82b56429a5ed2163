// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"slices"
	"testing"
	"time"
)

func TestAPodThatItsKubeletUpdatedWhileTheAnnotationWaitedIsNotAnnotated(t *testing.T) {
	for sentence, test := range map[string]struct {
		waited    time.Duration
		serves    string
		annotated []string
	}{
		"after two minutes it serves the set":        {2 * time.Minute, "new", nil},
		"after two minutes it serves the set before": {2 * time.Minute, "old", []string{"new.1"}},
		"after a minute nobody asks it first":        {time.Minute, "new", []string{"new.1"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := simulate(serves("old"))
			s.setTarget(Target{Digest: "old", Written: epoch})
			s.run(time.Second)
			s.annotated = nil
			s.setTarget(Target{Digest: "new", Written: s.now})
			s.now = s.now.Add(test.waited)
			s.answers = serves(test.serves)
			s.run(time.Second)
			if !slices.Equal(s.annotated, test.annotated) {
				t.Errorf("found the annotations %q, expected %q", s.annotated, test.annotated)
			}
		})
	}
}
