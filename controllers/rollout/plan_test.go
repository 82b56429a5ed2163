// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
)

// tenThenHalf is a rollout to 10 % for ten minutes, then to 50 % until somebody promotes it.
func tenThenHalf() *v1alpha1.Rollout {
	return &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{
		{SetWeight: ptr.To[int32](10), Pause: &v1alpha1.RolloutPause{Duration: &metav1.Duration{Duration: 10 * time.Minute}}},
		{SetWeight: ptr.To[int32](50), Pause: &v1alpha1.RolloutPause{}},
	}}
}

// trial is a rollout to twenty pods, with a clock.
type trial struct {
	attempt
	status *v1alpha1.RolloutStatus
	now    time.Time
}

func newTrial() *trial {
	var places []int64
	for i := range 20 {
		places = append(places, profile.RolloutPlaces/20*int64(i)+7)
	}
	return &trial{attempt: attempt{spec: tenThenHalf(), digest: "sha256:new", places: places}, now: time.Unix(1e9, 0)}
}

// planAfter lets some time pass and plans again. By then all reached pods serve the new profile.
func (r *trial) planAfter(after time.Duration) *trial {
	r.now = r.now.Add(after)
	if r.status != nil {
		n := 0
		for _, place := range r.places {
			if place < r.status.Below {
				n++
			}
		}
		r.seen.Expected, r.seen.New.Brokers, r.seen.Old.Brokers = n, n, len(r.places)-n
	}
	next := r.next(r.status, r.now)
	r.status = &next
	return r
}

func (r *trial) expect(t *testing.T, phase string, step, weight int32, reached int) {
	t.Helper()
	n := len(slices.DeleteFunc(slices.Clone(r.places), func(place int64) bool { return place >= r.status.Below }))
	if r.status.Phase != phase || r.status.Step != step || r.status.Weight != weight || n != reached {
		t.Fatalf("%s, step %d, weight %d, %d pods reached (%s), want %s, %d, %d, %d", r.status.Phase, r.status.Step, r.status.Weight, n, r.status.Message, phase, step, weight, reached)
	}
}

func TestARolloutTakesItsStepsAndEndsWithAllPods(t *testing.T) {
	r := newTrial()
	r.planAfter(0).expect(t, "Progressing", 1, 10, 2)
	r.planAfter(time.Second).expect(t, "Progressing", 1, 10, 2)
	r.planAfter(9*time.Minute).expect(t, "Progressing", 1, 10, 2)
	r.planAfter(time.Minute).expect(t, "Progressing", 2, 50, 10)
	r.planAfter(time.Second).expect(t, "Paused", 2, 50, 10)
	r.planAfter(time.Hour).expect(t, "Paused", 2, 50, 10)
	r.asked.promoted = 2
	r.planAfter(time.Second).expect(t, "Complete", 2, 100, 20)
	r.planAfter(time.Second).expect(t, "Complete", 2, 100, 20)
}

func TestAStepWaitsForThePodsThatItReached(t *testing.T) {
	r := newTrial()
	r.planAfter(0)
	r.spec.Steps[0].Pause = nil
	r.seen.Expected, r.seen.New.Brokers = 2, 1
	next := r.next(r.status, r.now.Add(time.Hour))
	if next.Step != 1 || next.Confirmed != nil || !strings.Contains(next.Message, "1 of 2 pods") {
		t.Errorf("step %d, %q", next.Step, next.Message)
	}
}

func TestPromotionSkipsWhatIsLeft(t *testing.T) {
	r := newTrial()
	r.planAfter(0)
	r.asked.all = true
	r.planAfter(0).expect(t, "Complete", 1, 100, 20)
}

func TestAnotherChangeBeginsAnew(t *testing.T) {
	r := newTrial()
	r.planAfter(0).planAfter(time.Second).planAfter(10*time.Minute).expect(t, "Progressing", 2, 50, 10)
	r.digest = "sha256:newer"
	r.planAfter(0).expect(t, "Progressing", 1, 10, 2)
}

func TestARolloutStopsOnFailure(t *testing.T) {
	for sentence, test := range map[string]struct {
		seen distribute.Sides
		want string
	}{
		"when brokers refuse it":                                  {distribute.Sides{Refusing: []string{"shop/b", "shop/a"}}, "2 brokers refuse it, the first in pod shop/a."},
		"when one broker refuses it":                              {distribute.Sides{Refusing: []string{"shop/b"}}, "The broker in pod shop/b refuses it."},
		"when calls fail that did not":                            {distribute.Sides{New: distribute.Side{Calls: 100, Failed: 5}, Old: distribute.Side{Calls: 900}}, "5 of 100 calls failed with the new profile, 0 of 900 with the old one."},
		"when calls fail more than twice as often":                {distribute.Sides{New: distribute.Side{Calls: 100, Failed: 21}, Old: distribute.Side{Calls: 100, Failed: 10}}, "21 of 100 calls failed"},
		"when calls fail and nobody has the old one":              {distribute.Sides{New: distribute.Side{Calls: 10, Failed: 10}}, "10 of 10 calls failed"},
		"but not when calls fail twice as often":                  {distribute.Sides{New: distribute.Side{Calls: 100, Failed: 20}, Old: distribute.Side{Calls: 100, Failed: 10}}, ""},
		"but not for one call in a hundred":                       {distribute.Sides{New: distribute.Side{Calls: 1000, Failed: 10}, Old: distribute.Side{Calls: 1000}}, ""},
		"but not for two calls":                                   {distribute.Sides{New: distribute.Side{Calls: 2, Failed: 2}, Old: distribute.Side{Calls: 1000}}, ""},
		"but not when calls fail with the old one as they always": {distribute.Sides{New: distribute.Side{Calls: 10, Failed: 9}, Old: distribute.Side{Calls: 10, Failed: 9}}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newTrial()
			r.planAfter(0)
			r.seen = test.seen
			failure := r.failure()
			if test.want == "" {
				if failure != "" {
					t.Error(failure)
				}
				return
			}
			if !strings.Contains(failure, test.want) {
				t.Errorf("found %q, want %q", failure, test.want)
			}
			r.planAfter(time.Second).expect(t, "Failed", 1, 10, 2)
			r.seen.Refusing, r.seen.New.Failed = nil, 0
			r.planAfter(time.Hour).expect(t, "Failed", 1, 10, 2)
			r.asked.promoted = 1
			r.planAfter(0).expect(t, "Progressing", 2, 50, 10)
		})
	}
}

func TestARolloutThatReturnsStaysReturned(t *testing.T) {
	r := newTrial()
	r.spec.OnFailure = v1alpha1.OnFailureReturn
	r.planAfter(0)
	r.seen.Refusing = []string{"shop/a"}
	r.planAfter(time.Second).expect(t, "Returned", 1, 0, 0)
	r.seen.Refusing = nil
	r.planAfter(time.Hour).expect(t, "Returned", 1, 0, 0)
	if got := (rollout{r.spec, r.status}).reach(r.digest, nil); got != 0 {
		t.Errorf("it reaches %d places", got)
	}
}

func TestSomebodyCanGoBack(t *testing.T) {
	r := newTrial()
	r.planAfter(0).planAfter(time.Second)
	r.asked.back = true
	r.planAfter(0).expect(t, "Returned", 1, 0, 0)
	r.asked = request{all: true}
	r.planAfter(0).expect(t, "Complete", 1, 100, 20)
	r.asked = request{back: true}
	r.planAfter(0).expect(t, "Complete", 1, 100, 20)
}

func TestAFailedRolloutGoesBackOnceItsSpecSaysSo(t *testing.T) {
	r := newTrial()
	r.planAfter(0)
	r.seen.Refusing = []string{"shop/a"}
	r.planAfter(time.Second).expect(t, "Failed", 1, 10, 2)
	r.spec.OnFailure = v1alpha1.OnFailureReturn
	r.planAfter(time.Second).expect(t, "Returned", 1, 0, 0)
	if r.status.Message != "The broker in pod shop/a refuses it." {
		t.Errorf("the message is %q", r.status.Message)
	}
}

func TestPromotionAfterAFailureTakesTheNextStepAlthoughBrokersRefuse(t *testing.T) {
	r := newTrial()
	r.planAfter(0)
	r.seen.Refusing = []string{"shop/a"}
	r.planAfter(time.Second).expect(t, "Failed", 1, 10, 2)
	r.asked.promoted = 1
	r.planAfter(time.Second).expect(t, "Progressing", 2, 50, 10)
	r.planAfter(time.Second).expect(t, "Failed", 2, 50, 10)
}

func TestAStepDoesNotEndBeforeAllBrokersWereAsked(t *testing.T) {
	r := newTrial()
	r.planAfter(0).planAfter(time.Second)
	r.seen.Unasked = 1
	r.planAfter(time.Hour).expect(t, "Progressing", 1, 10, 2)
	r.seen.Unasked = 0
	r.planAfter(time.Second).expect(t, "Progressing", 2, 50, 10)
}

func TestARolloutStaysAtItsLastStepWhenStepsAreTakenAway(t *testing.T) {
	r := newTrial()
	r.planAfter(0).planAfter(time.Second).planAfter(10*time.Minute).expect(t, "Progressing", 2, 50, 10)
	r.spec.Steps = r.spec.Steps[1:]
	r.planAfter(time.Second).expect(t, "Paused", 1, 50, 10)
}

func TestAPauseThatGetsADurationEnds(t *testing.T) {
	r := newTrial()
	r.spec.Steps[0].Pause.Duration = nil
	r.planAfter(0).planAfter(time.Second).expect(t, "Paused", 1, 10, 2)
	r.spec.Steps[0].Pause.Duration = &metav1.Duration{Duration: time.Minute}
	r.planAfter(time.Second).expect(t, "Progressing", 1, 10, 2)
	r.planAfter(time.Minute).expect(t, "Progressing", 2, 50, 10)
}

func TestASetWithoutRoomForBothProfilesStopsTheRollout(t *testing.T) {
	r := newTrial()
	r.noRoom = "shop"
	r.planAfter(0).planAfter(time.Second).expect(t, "Failed", 1, 10, 2)
	if !strings.Contains(r.status.Message, "The set of namespace shop has no room for both profiles") {
		t.Errorf("the message is %q", r.status.Message)
	}
}

func TestWhatSomebodyAsksCountsForOneAttempt(t *testing.T) {
	status := &v1alpha1.RolloutStatus{Attempt: "9f86d081-100"}
	for value, want := range map[string]request{
		"9f86d081-100":        {all: true},
		"9f86d081-100/2":      {promoted: 2},
		"9f86d081-100/return": {back: true},
		"9f86d081-100/":       {},
		"9f86d081-100/x":      {},
		"9f86d081-99":         {},
		"":                    {},
	} {
		p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.PromoteAnnotation: value}}}
		if got := requestOf(object{Object: p, status: &v1alpha1.ProfileStatus{Rollout: status}}); got != want {
			t.Errorf("%q: %+v, want %+v", value, got, want)
		}
		if got := requestOf(object{Object: p, status: &v1alpha1.ProfileStatus{}}); got != (request{}) {
			t.Errorf("%q without a rollout: %+v", value, got)
		}
	}
}

func TestTheMessageOfAStepSaysWhichPodsItReaches(t *testing.T) {
	staging := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "staging"}}
	a := attempt{digest: "sha256:new", spec: &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{
		{SetWeight: ptr.To[int32](10)}, {NamespaceSelector: staging}, {SetWeight: ptr.To[int32](100)},
	}}}
	for i, want := range []string{"10 % of the pods", "all pods of the selected namespaces and 10 % of the others", "100 % of the pods"} {
		if status, message := a.begin(v1alpha1.RolloutStatus{}, int32(i+1), time.Unix(1e9, 0)), "brings the new profile to "+want+"."; !strings.HasSuffix(status.Message, message) {
			t.Errorf("step %d: found %q, expected it to end with %q", i+1, status.Message, message)
		}
	}
	a.spec.Steps = a.spec.Steps[1:]
	if status, want := a.begin(v1alpha1.RolloutStatus{}, 1, time.Unix(1e9, 0)), "Step 1 of 2: brings the new profile to all pods of the selected namespaces."; status.Message != want {
		t.Errorf("found %q, expected %q", status.Message, want)
	}
}
