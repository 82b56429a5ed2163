// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// allPlaces is reached by each broker that knows its pod.
const allPlaces = profile.RolloutPlaces - 1

// onSide returns a broker that reports that it serves the set, with one side of the rollout of orders.
func onSide(isNew bool, calls, failed int64) *broker {
	s := simulate(serves("set"))
	s.pod.rolls, s.pod.name = true, types.NamespacedName{Namespace: "shop", Name: "pod"}
	s.setTarget(Target{Digest: "set"})
	answer := confirm.Answer{Digest: "set", Reason: string(directory.Loaded)}
	answer.Rollouts[0] = confirm.Rollout{Profile: "orders", Digest: "change", New: isNew, Calls: calls, Failed: failed}
	s.recordAnswer(answer, 1, time.Now())
	return s.broker
}

// distributing returns a distributor that knows these brokers of the namespace shop.
func distributing(brokers ...*broker) *Distributor {
	ns := &namespace{brokers: map[string]*broker{}}
	for i, b := range brokers {
		ns.brokers[fmt.Sprint(i)] = b
	}
	return &Distributor{namespaces: map[string]*namespace{"shop": ns}, brokers: len(brokers)}
}

func with(b *broker, change func(*broker)) *broker {
	change(b)
	return b
}

func TestWhatABrokerSaysAboutARollout(t *testing.T) {
	for sentence, test := range map[string]struct {
		broker *broker
		below  int64
		want   Sides
	}{
		"it serves the new profile":               {onSide(true, 10, 3), allPlaces, Sides{New: Side{1, 10, 3}, Expected: 1}},
		"it serves the old profile":               {onSide(false, 10, 3), 0, Sides{Old: Side{1, 10, 3}}},
		"it has yet to get the step's set":        {onSide(false, 10, 3), allPlaces, Sides{Old: Side{1, 10, 3}, Expected: 1}},
		"more failures than calls count as calls": {onSide(true, 10, 30), allPlaces, Sides{New: Side{1, 10, 10}, Expected: 1}},
		"numbers below zero count as none":        {onSide(true, -1, -1), allPlaces, Sides{New: Side{1, 0, 0}, Expected: 1}},
		"it speaks of another change": {with(onSide(true, 10, 10), func(b *broker) {
			b.answer.Rollouts[0].Digest = "before"
		}), allPlaces, Sides{Expected: 1}},
		"it speaks of another set": {with(onSide(true, 10, 10), func(b *broker) {
			b.setTarget(Target{Digest: "next"})
		}), allPlaces, Sides{Expected: 1}},
		"it refuses the new profile": {with(onSide(false, 10, 0), func(b *broker) {
			b.answer.Rollouts[0].Refused, b.answer.Reason = true, string(directory.ProfilesRejected)
		}), allPlaces, Sides{Expected: 1, Refusing: []string{"shop/pod"}}},
		"it refuses another profile": {with(onSide(true, 10, 0), func(b *broker) {
			b.answer.Reason = string(directory.ProfilesRejected)
		}), allPlaces, Sides{New: Side{1, 10, 0}, Expected: 1}},
		"it refuses the set, which it must know wherever its place is": {with(onSide(false, 0, 0), func(b *broker) {
			b.setTarget(Target{Digest: "next"})
			b.answer, b.tries, b.tried = confirm.Answer{Digest: "set", Reason: string(directory.SetRejected)}, MaxTries, b.answered.Add(-time.Minute)
		}), 0, Sides{Refusing: []string{"shop/pod"}}},
		"it was not asked": {with(onSide(true, 0, 0), func(b *broker) {
			b.known = false
		}), allPlaces, Sides{Expected: 1, Unasked: 1}},
		"it can't be asked": {with(onSide(true, 0, 0), func(b *broker) {
			b.known, b.failures = false, unverifiedAfter
		}), allPlaces, Sides{}},
		"it does not know its pod, and so has the last place": {with(onSide(false, 0, 0), func(b *broker) {
			b.pod.rolls = false
		}), allPlaces, Sides{Old: Side{1, 0, 0}}},
		"it has no room in its answer for this rollout": {with(onSide(true, 0, 0), func(b *broker) {
			for i := range b.answer.Rollouts {
				b.answer.Rollouts[i] = confirm.Rollout{Profile: fmt.Sprint("other-", i)}
			}
		}), allPlaces, Sides{New: Side{Brokers: 1}, Expected: 1}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, distributing(test.broker).Sides("shop", "orders", "change", test.below)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if all := distributing().Sides("unknown", "orders", "change", allPlaces); all.Expected != 0 {
		t.Errorf("an unknown namespace has %+v", all)
	}
}

func TestPlacesAreThoseOfBrokersThatKnowTheirPod(t *testing.T) {
	first, second, former := onSide(true, 0, 0), onSide(true, 0, 0), onSide(true, 0, 0)
	second.pod.uid, former.pod.rolls = "2", false
	places := distributing(first, second, former).Places("shop", "orders")
	slices.Sort(places)
	want := []int64{profile.RolloutPlace("1", "orders"), profile.RolloutPlace("2", "orders")}
	slices.Sort(want)
	if !slices.Equal(places, want) {
		t.Errorf("places %d, want %d", places, want)
	}
}

func TestABrokerKnowsItsPodByTheVariableThatTheOperatorInjects(t *testing.T) {
	for sentence, test := range map[string]struct {
		env  []corev1.EnvVar
		want bool
	}{
		"with the variable":    {[]corev1.EnvVar{{Name: "X"}, {Name: contract.InstanceVariable}}, true},
		"without the variable": {[]corev1.EnvVar{{Name: "X"}}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			full := injectedPod(func(p *corev1.Pod) { p.Spec.InitContainers[0].Env = test.env })
			stripped, err := StripPod(full)
			if err != nil {
				t.Fatal(err)
			}
			if seen, _ := view(stripped.(*corev1.Pod)); seen.rolls != test.want {
				t.Errorf("it knows its pod: %t", seen.rolls)
			}
		})
	}
}

func TestBrokersAreAskedMoreOftenDuringARolloutButNotMoreThanAHundredASecond(t *testing.T) {
	for brokers, want := range map[int]time.Duration{1: rolloutRecheck, 1000: 10 * time.Second, 10_000: 100 * time.Second} {
		b := onSide(true, 0, 0)
		b.recordAnswer(b.answer, brokers, time.Now())
		if b.recheck != want {
			t.Errorf("one of %d brokers is asked again after %s, want %s", brokers, b.recheck, want)
		}
	}
	b := onSide(true, 0, 0)
	b.recordAnswer(b.answer, 1_000_000, time.Now())
	if b.recheck < minRecheck || b.recheck > maxRecheck {
		t.Errorf("one of a million brokers is asked again after %s", b.recheck)
	}
}
