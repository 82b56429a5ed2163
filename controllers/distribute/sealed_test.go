// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// simulateSealed returns a broker that takes signed sets only.
func simulateSealed(answers func(time.Time) (confirm.Answer, error)) *simulation {
	s := simulate(answers)
	s.pod.sealed = true
	return s
}

func answering(digest string, revision int64, reason directory.Reason) func(time.Time) (confirm.Answer, error) {
	return func(time.Time) (confirm.Answer, error) {
		return confirm.Answer{Digest: digest, Revision: revision, Reason: string(reason)}, nil
	}
}

func TestABrokerOfSignedSetsConfirmsByDigestAndRevision(t *testing.T) {
	for sentence, test := range map[string]struct {
		answers func(time.Time) (confirm.Answer, error)
		sealed  bool
		want    class
		ahead   bool
	}{
		"the set and its revision":                  {answering("new", 7, directory.Loaded), true, updated, false},
		"the set with a higher revision":            {answering("new", 8, directory.Loaded), true, updated, true},
		"the set with an older revision":            {answering("new", 6, directory.Loaded), true, behind, false},
		"another set with the revision":             {answering("old", 7, directory.Loaded), true, behind, false},
		"a newer set than the cluster knows":        {answering("other", 9, directory.RevisionRejected), true, refusing, true},
		"the older set, having refused a signature": {answering("old", 6, directory.SignatureRejected), true, refusing, false},
		"the older set, having no room for another": {answering("old", 6, directory.NotKept), true, refusing, false},
		"the set, where none is signed":             {answering("new", 0, directory.Loaded), false, updated, false},
		"a revision, where none is signed":          {answering("new", 9, directory.Loaded), false, updated, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := simulate(test.answers)
			s.pod.sealed = test.sealed
			s.setTarget(Target{Digest: "new", Revision: 7, Written: epoch})
			s.run(time.Minute)
			if got := s.class(s.now); got != test.want {
				t.Errorf("the broker counts as %d, expected %d", got, test.want)
			}
			if s.ahead() != test.ahead {
				t.Errorf("is ahead: %t", s.ahead())
			}
		})
	}
}

func TestAHigherRevisionOfTheSameSetIsBroughtWithAnotherAnnotation(t *testing.T) {
	revision := int64(7)
	s := simulateSealed(func(time.Time) (confirm.Answer, error) {
		return confirm.Answer{Digest: "new", Revision: revision, Reason: string(directory.Loaded)}, nil
	})
	s.setTarget(Target{Digest: "new", Revision: 7, Written: epoch})
	s.run(time.Second)
	expect(t, s, updated)
	s.setTarget(Target{Digest: "new", Revision: 9, Written: s.now})
	s.run(100 * time.Millisecond)
	expect(t, s, updating, "new.1")
	revision = 9
	s.run(time.Second)
	expect(t, s, updated, "new.1")
	s.setTarget(Target{Digest: "new", Revision: 11, Written: s.now})
	s.run(100 * time.Millisecond)
	expect(t, s, updating, "new.1", "new.2")
}

func TestAChangeThatIsTakenBackNeedsNoDetourWhereSetsHaveRevisions(t *testing.T) {
	answer := confirm.Answer{Digest: "first", Revision: 1, Reason: string(directory.Loaded)}
	s := simulateSealed(func(time.Time) (confirm.Answer, error) { return answer, nil })
	s.setTarget(Target{Digest: "first", Revision: 1, Written: epoch})
	s.run(time.Second)
	s.setTarget(Target{Digest: "second", Revision: 2, Written: s.now})
	s.setTarget(Target{Digest: "first", Revision: 3, Written: s.now})
	s.run(200 * time.Millisecond)
	expect(t, s, updating, "first.1") // the previous answer is about the first revision
	answer.Revision = 3
	s.run(200 * time.Millisecond)
	expect(t, s, updated, "first.1")
}

func TestAPodWithTrustedKeysTakesSignedSetsOnly(t *testing.T) {
	for argument, want := range map[string]bool{"--trusted-keys=ed25519:AA": true, "--trusted-keysx": false, "--callers=--trusted-keys=": false} {
		found, has := view(injectedPod(func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Args = append(p.Spec.InitContainers[0].Args, argument)
		}))
		if !has || found.sealed != want {
			t.Errorf("%s: sealed is %t", argument, found.sealed)
		}
	}
}
