// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// Sides has the reports of a namespace's brokers about the rollout of a profile.
type Sides struct {
	// New and Old are the brokers that serve the new profile, and the old one.
	New, Old Side
	// Expected is the number of brokers that the rollout has reached and that can be asked.
	// Unasked of them have not been asked since they or this process began.
	Expected, Unasked int
	// Refusing are the pods, as namespace/name, whose brokers refuse the set. It also has the
	// pods that the rollout has reached and whose brokers refuse the new profile.
	Refusing []string
}

// Side is one side of a rollout.
type Side struct {
	Brokers int
	// Calls are the calls of the profile that ended since the brokers came to this side, and
	// Failed those that did not succeed.
	Calls, Failed int64
}

// Add adds the reports of another namespace's brokers.
func (s *Sides) Add(other Sides) {
	s.New.add(other.New)
	s.Old.add(other.Old)
	s.Expected += other.Expected
	s.Unasked += other.Unasked
	s.Refusing = append(s.Refusing, other.Refusing...)
}

func (s *Side) add(other Side) {
	s.Brokers += other.Brokers
	s.Calls += other.Calls
	s.Failed += other.Failed
}

// maxCountedCalls bounds the calls that one broker adds to a side, so sums cannot overflow even
// if a program that is not a broker answers.
const maxCountedCalls = 1 << 40

// Sides returns the reports of a namespace's brokers about the rollout of a profile that has
// reached the places below a number. digest identifies the new profile.
func (d *Distributor) Sides(namespace, name, digest string, below int64) (all Sides) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ns, ok := d.namespaces[namespace]
	if !ok {
		return all
	}
	now := time.Now()
	for _, b := range ns.brokers {
		reached := b.place(name) < below
		switch class := b.class(now); {
		case class == uncounted, class == unverified, class == waiting:
			continue
		case class == refusing:
			all.Refusing = append(all.Refusing, b.pod.name.String())
			continue
		case class == checking && reached:
			all.Unasked++
		}
		if reached {
			all.Expected++
		}
		switch side, says := b.side(name, digest, reached); {
		case !says:
		case side.Refused:
			all.Refusing = append(all.Refusing, b.pod.name.String())
		case side.New:
			all.New.add(counted(side))
		default:
			all.Old.add(counted(side))
		}
	}
	return all
}

// side returns the broker's report about the rollout of a profile. It returns false if the broker
// was not asked, or serves another set than the target. The answer of a broker has room for a
// limited number of rollouts. If it is full, the place of the broker decides, and its calls count
// as none.
func (b *broker) side(name, digest string, reached bool) (confirm.Rollout, bool) {
	if !b.known || b.stale || !b.serves() {
		return confirm.Rollout{}, false
	}
	full := true
	for _, r := range b.answer.Rollouts {
		if r.Profile == name && r.Digest == digest {
			return r, true
		}
		full = full && r.Profile != "" && r.Profile != name
	}
	return confirm.Rollout{New: reached}, full
}

func counted(r confirm.Rollout) Side {
	calls := min(max(r.Calls, 0), maxCountedCalls)
	return Side{1, calls, min(max(r.Failed, 0), calls)}
}

// Places returns the places that the running brokers of a namespace have in the rollouts of
// a profile.
func (d *Distributor) Places(namespace, name string) (places []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ns, ok := d.namespaces[namespace]; ok {
		for _, b := range ns.brokers {
			if b.pod.rolls {
				places = append(places, b.place(name))
			}
		}
	}
	return places
}

// place returns the place of a broker in the rollouts of a profile: the last one where the
// broker does not know its pod.
func (b *broker) place(name string) int64 {
	if !b.pod.rolls {
		return profile.RolloutPlaces - 1
	}
	return profile.RolloutPlace(string(b.pod.uid), name)
}

// rolls reports whether the set that the broker serves rolls a profile out.
func (b *broker) rolls() bool { return b.answer.Rollouts[0].Profile != "" }
