// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// epoch is when a simulation begins.
var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// simulation runs the decisions about one broker with its own clock.
type simulation struct {
	*broker
	now time.Time
	// answers returns the answer of the broker at a time. nil means no answer.
	answers func(now time.Time) (confirm.Answer, error)
	// annotated has the written values, and asked has the times of the requests to the broker.
	annotated []string
	asked     []time.Duration
	// took is how long the API server takes to write an annotation.
	took time.Duration
}

func simulate(answers func(time.Time) (confirm.Answer, error)) *simulation {
	s := &simulation{broker: &broker{annotates: true}, now: epoch, answers: answers}
	s.setPod(pod{
		uid:      "1",
		address:  netip.MustParseAddrPort("10.0.0.1:9470"),
		running:  epoch.Add(-time.Hour),
		started:  true,
		instance: "first",
	}, s.now)
	return s
}

// run carries out the actions of next until the time has passed.
func (s *simulation) run(d time.Duration) {
	end := s.now.Add(d)
	for {
		what, pause := s.next(s.now)
		switch what {
		case actionAnnotate:
			value := s.nextValue()
			s.annotated = append(s.annotated, value)
			s.now = s.now.Add(s.took)
			s.recordWrite(s.target.Digest, value, s.took, s.now)
			continue
		case actionAsk:
			s.asked = append(s.asked, s.now.Sub(epoch))
			if answer, err := s.answers(s.now); err != nil {
				s.recordFailure(s.now)
			} else {
				s.recordAnswer(answer, 1, s.now)
			}
			continue
		}
		if pause == 0 || s.now.Add(pause).After(end) {
			s.now = end
			return
		}
		s.now = s.now.Add(pause)
	}
}

func serves(digest string) func(time.Time) (confirm.Answer, error) {
	return func(time.Time) (confirm.Answer, error) {
		return confirm.Answer{Digest: digest, Reason: string(directory.Loaded)}, nil
	}
}

// changesTo serves one digest until a time after epoch, then another.
func changesTo(before, after string, at time.Duration) func(time.Time) (confirm.Answer, error) {
	return func(now time.Time) (confirm.Answer, error) {
		if now.Sub(epoch) < at {
			return serves(before)(now)
		}
		return serves(after)(now)
	}
}

func silent(time.Time) (confirm.Answer, error) { return confirm.Answer{}, errors.New("no answer") }

func expect(t *testing.T, s *simulation, want class, annotated ...string) {
	t.Helper()
	if found := s.class(s.now); found != want {
		t.Errorf("the broker counts as %d, expected %d", found, want)
	}
	if !slices.Equal(s.annotated, annotated) {
		t.Errorf("annotated %q, expected %q", s.annotated, annotated)
	}
}

func TestABrokerThatServesTheSetIsLeftAlone(t *testing.T) {
	s := simulate(serves("new"))
	s.setTarget(Target{Digest: "new"})
	s.run(time.Minute)
	expect(t, s, updated)
	if len(s.asked) != 1 {
		t.Errorf("asked at %v, expected once", s.asked)
	}
	s.run(10 * time.Minute)
	if len(s.asked) < 2 || len(s.asked) > 5 {
		t.Errorf("asked %d times in 11 minutes, expected every 3 to 7", len(s.asked))
	}
}

func TestABrokerThatServesTheSetOverADamagedFileIsWokenUntilTheFileIsRight(t *testing.T) {
	for _, reason := range []directory.Reason{directory.SetRejected, directory.Missing} {
		t.Run(string(reason), func(t *testing.T) {
			s := simulate(func(now time.Time) (confirm.Answer, error) {
				if now.Sub(epoch) < 2*time.Second {
					return confirm.Answer{Digest: "same", Reason: string(reason)}, nil
				}
				return serves("same")(now)
			})
			s.setTarget(Target{Digest: "same", Written: epoch})
			s.run(time.Minute)
			expect(t, s, updated, "same.1", "same.2")
		})
	}
}

func TestAChangeThatIsTakenBackBeforeItWasConfirmedIsBroughtToTheBrokerAgain(t *testing.T) {
	// The broker gets the change after the last request of the operator. It gets the change back only when its kubelet is woken.
	s := simulate(nil)
	s.answers = func(now time.Time) (confirm.Answer, error) {
		if now.Sub(epoch) >= 300*time.Millisecond && now.Sub(epoch) < 1200*time.Millisecond {
			return serves("change")(now)
		}
		return serves("first")(now)
	}
	s.setTarget(Target{Digest: "first"})
	s.run(0)
	s.setTarget(Target{Digest: "change", Written: s.now})
	s.run(200 * time.Millisecond)
	expect(t, s, updating, "change.1")

	s.setTarget(Target{Digest: "first", Written: s.now})
	if found := s.class(s.now); found == updated {
		t.Error("what the broker said before the change counts as a confirmation of the way back")
	}
	s.run(10 * time.Second)
	expect(t, s, updated, "change.1", "first.1")
}

func TestABrokerThatIsKnownToBeBehindIsAnnotatedBeforeItIsAsked(t *testing.T) {
	s := simulate(changesTo("old", "new", 650*time.Millisecond))
	s.setTarget(Target{Digest: "old"})
	s.run(0)
	s.asked = nil
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(2 * time.Second)
	expect(t, s, updated, "new.1")
	if s.asked[0] != firstDelay {
		t.Errorf("asked first after %s, expected %s", s.asked[0], firstDelay)
	}
	if len(s.asked) > 3 {
		t.Errorf("asked %d times, after %s, of a kubelet that takes as long as they do in the median", len(s.asked), s.asked)
	}
	if took := s.confirmed.Sub(epoch); took > 650*time.Millisecond+pollInterval {
		t.Errorf("confirmed after %s", took)
	}
	if !s.isTimed() {
		t.Error("the time it took is not counted")
	}
}

func TestEachTryHasAnotherValueAndTheLastIsTheFourth(t *testing.T) {
	s := simulate(serves("old"))
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(20 * time.Second)
	expect(t, s, behind, "new.1", "new.2", "new.3", "new.4")
	if len(s.asked) > 80 {
		t.Errorf("asked %d times in 20 s", len(s.asked))
	}
	quiet := len(s.asked)
	s.run(10 * time.Minute)
	if n := len(s.asked) - quiet; n > 250 {
		t.Errorf("asked %d times in 10 minutes after the last try", n)
	}
}

func TestASetThatComesBackGetsAValueThatThePodDoesNotHave(t *testing.T) {
	s := simulate(serves("other"))
	s.setPod(pod{uid: "1", address: s.pod.address, running: s.pod.running, started: true, instance: "first", annotation: "new.1"}, s.now)
	s.setTarget(Target{Digest: "new"})
	s.run(time.Second)
	expect(t, s, updating, "new.2")
}

func TestARefusalIsToldOnceAllHasBeenTried(t *testing.T) {
	s := simulate(func(time.Time) (confirm.Answer, error) {
		return confirm.Answer{Digest: "old", Reason: string(directory.SetRejected)}, nil
	})
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(time.Second)
	expect(t, s, updating, "new.1")
	s.run(19 * time.Second)
	expect(t, s, refusing, "new.1", "new.2", "new.3", "new.4")
}

func TestABrokerThatDoesNotAnswerIsAnnotatedOnce(t *testing.T) {
	s := simulate(silent)
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(20 * time.Minute)
	expect(t, s, unverified, "new.1")
	if n := len(s.asked); n > 40 {
		t.Errorf("asked %d times in 20 minutes", n)
	}
	s.setTarget(Target{Digest: "newer", Written: s.now})
	s.run(time.Millisecond)
	expect(t, s, unverified, "new.1", "newer.1")
}

func TestABrokerWithoutAnAddressIsAnnotatedOnceAndNeverAsked(t *testing.T) {
	s := simulate(silent)
	s.pod.address = netip.AddrPort{}
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(time.Hour)
	expect(t, s, unverified, "new.1")
	if len(s.asked) > 0 {
		t.Errorf("asked at %v", s.asked)
	}
}

func TestABrokerThatTheLeaderBeforeAnnotatedIsNotAnnotatedAgainWhenItDoesNotAnswer(t *testing.T) {
	s := simulate(silent)
	s.pod.annotation = "new.1"
	s.setTarget(Target{Digest: "new"})
	s.run(time.Hour)
	expect(t, s, unverified)
}

func TestOneMissedQuestionForgetsNothing(t *testing.T) {
	misses := 0
	s := simulate(func(now time.Time) (confirm.Answer, error) {
		if now.After(epoch) && misses < forgetAfter-1 {
			misses++
			return silent(now)
		}
		return serves("new")(now)
	})
	s.setTarget(Target{Digest: "new"})
	for range 60 {
		s.run(10 * time.Second)
		expect(t, s, updated)
	}
	if misses != forgetAfter-1 {
		t.Errorf("missed %d questions, expected %d", misses, forgetAfter-1)
	}
}

func TestARestartedBrokerIsAskedAgain(t *testing.T) {
	s := simulate(serves("new"))
	s.setTarget(Target{Digest: "new"})
	s.run(time.Second)
	restarted := s.pod
	restarted.instance, restarted.running = "second", s.now
	s.setPod(restarted, s.now)
	expect(t, s, checking)
	s.run(time.Millisecond)
	expect(t, s, updated)
	if len(s.asked) != 2 {
		t.Errorf("asked at %v, expected twice", s.asked)
	}
}

func TestAnotherPodOfTheSameNameIsAnotherBroker(t *testing.T) {
	s := simulate(serves("old"))
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(20 * time.Second)
	successor := s.pod
	successor.uid = "2"
	s.setPod(successor, s.now)
	if s.tries != 0 || s.value != "" || s.target.Digest != "new" || !s.annotates {
		t.Errorf("found %+v", s.broker)
	}
}

func TestTheSameSetWrittenAgainIsConfirmedAgain(t *testing.T) {
	s := simulate(serves("new"))
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(time.Second)
	s.setTarget(Target{Digest: "new", Written: s.now})
	expect(t, s, checking)
	s.run(time.Millisecond)
	expect(t, s, updated)
}

func TestABrokerThatWaitsForItsFirstSet(t *testing.T) {
	tests := map[string]struct {
		written   time.Duration // after epoch, when its container began to run
		after     time.Duration
		class     class
		annotated []string
	}{
		"has time to read what was there before":                  {-time.Minute, time.Second, uncounted, nil},
		"is woken when it took too long":                          {-time.Minute, 2 * time.Second, uncounted, []string{"new.1"}},
		"is woken at once for a set that came later":              {time.Second, time.Second, uncounted, []string{"new.1"}},
		"is woken four times, then counts as waiting for its set": {-time.Minute, time.Minute, waiting, []string{"new.1", "new.2", "new.3", "new.4"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			s := simulate(silent)
			s.setPod(pod{uid: "1", address: s.pod.address, running: epoch, instance: "second"}, s.now)
			s.setTarget(Target{Digest: "new", Written: epoch.Add(test.written)})
			s.run(test.after)
			expect(t, s, test.class, test.annotated...)
			if len(s.asked) > 0 {
				t.Errorf("asked at %v before it was started", s.asked)
			}
		})
	}
}

func TestABrokerThatWaitsIsWokenAlthoughTheClockOfItsNodeIsAhead(t *testing.T) {
	s := simulate(silent)
	ahead := pod{uid: "1", address: s.pod.address, running: epoch.Add(time.Hour), instance: "second"}
	s.setPod(ahead, s.now)
	s.setTarget(Target{Digest: "new", Written: epoch.Add(-time.Minute)})
	s.run(time.Second)
	s.setPod(ahead, s.now) // as with each change of the pod
	s.run(time.Second)
	expect(t, s, uncounted, "new.1")
	s.run(time.Minute)
	expect(t, s, waiting, "new.1", "new.2", "new.3", "new.4")
}

func TestWithoutHurryABrokerIsAskedForAsLongAsAKubeletTakes(t *testing.T) {
	s := simulate(changesTo("old", "new", 80*time.Second))
	s.annotates = false
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(79 * time.Second)
	expect(t, s, updating)
	s.run(3 * time.Second)
	expect(t, s, updated)

	s = simulate(serves("old"))
	s.annotates = false
	s.setTarget(Target{Digest: "new", Written: epoch})
	s.run(5 * time.Minute)
	expect(t, s, behind)
}

func TestWithoutATargetNothingIsDone(t *testing.T) {
	s := simulate(serves("old"))
	s.run(time.Hour)
	expect(t, s, uncounted)
	if len(s.asked) > 0 {
		t.Errorf("asked at %v", s.asked)
	}
}

func TestPausesGrowToAMinute(t *testing.T) {
	for failures := range 100 {
		pause := backoff(failures + 1)
		if pause < minBackoff/2 || pause > maxBackoff*5/4 {
			t.Errorf("after %d failures the pause is %s", failures+1, pause)
		}
	}
}

func TestASlowAPIServerIsWrittenToNoMoreThanAFastOne(t *testing.T) {
	for took, arrives := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 700 * time.Millisecond,
		time.Second:           4 * time.Second, // the kubelet uses the same API server
		3 * time.Second:       12 * time.Second,
	} {
		s := simulate(changesTo("old", "new", arrives))
		s.took = took
		s.recordAnswer(confirm.Answer{Digest: "old", Reason: string(directory.Loaded)}, 1, s.now)
		s.setTarget(Target{Digest: "new", Written: s.now})
		s.run(time.Minute)
		if want := []string{"new.1"}; !slices.Equal(s.annotated, want) {
			t.Errorf("with an API server that takes %s, found the annotations %q, expected %q", took, s.annotated, want)
		}
	}
}

func TestAnAnnotationThatArrivedBesideAnErrorIsNotWrittenAgain(t *testing.T) {
	s := simulate(serves("old"))
	s.recordAnswer(confirm.Answer{Digest: "old", Reason: string(directory.Loaded)}, 1, s.now)
	s.setTarget(Target{Digest: "new", Written: s.now})
	s.uncertain, s.uncertainFor = s.nextValue(), s.target.Digest // the answer of the API server was lost
	seen := s.pod
	seen.annotation = s.uncertain
	s.setPod(seen, s.now)
	if what, _ := s.next(s.now); what == actionAnnotate || s.tries != 1 {
		t.Errorf("what is next is %v after %d tries, expected to wait after one", what, s.tries)
	}
}
