// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

// settledDelay is how long a status waits that differs only in numbers. So pods that
// come and go, and brokers that take a set one after the other, make one write. The
// numbers at the end of a change that somebody may be waiting for are written at once.
const settledDelay = 2 * time.Second

// movingDelay is the same while brokers are still being updated. Most profiles of a
// set did not change with it, and nobody waits for news of them. Where all brokers are
// updated within this time, such a profile gets no write at all.
const movingDelay = 30 * time.Second

// resyncDelay is the same where pods are not annotated, so that brokers wait for their
// kubelet's own resync. It is longer than the two minutes after which a broker counts as
// behind, which is written for each profile.
const resyncDelay = 3 * time.Minute

// A pod that comes or goes changes the numbers of each profile of its namespace. Within a
// numbersPeriod at most maxNumbers statuses of a namespace are written for numbers alone:
// 500 profiles have their numbers after 27 s, however many pods come and go meanwhile. A
// change that somebody may be waiting for waits for so many writes at most.
// ClusterCryptoProfiles, which have their numbers in common, are written as often on
// average.
const (
	numbersPeriod   = time.Second
	maxNumbers      = 20
	numbersInterval = numbersPeriod / maxNumbers
)

// difference is how a status differs from the one that is written.
type difference int

const (
	same      difference = iota
	inNumbers            // in numbers, and in messages with numbers
	inReasons            // also in the status or the reason of a condition, for which nobody waits
	urgent               // in something that somebody may be waiting for
)

// memory is what one reconciler remembers of the statuses that it writes. It decides
// when a status is worth a write. It is safe for concurrent use.
type memory struct {
	// moving is how long numbers wait while brokers are being updated.
	moving time.Duration

	mu sync.Mutex
	// profiles are by namespace, empty for a ClusterCryptoProfile, and name.
	profiles map[string]map[string]remembered
	// numbersFrom is from when on statuses of a namespace may be written for numbers alone.
	numbersFrom map[string]time.Time
}

// remembered is what is known of one profile. It is dropped when nothing is known.
type remembered struct {
	// differsSince is when the status began to differ from what is written.
	differsSince time.Time
	// awaited is true when the profile itself changed, so that somebody may be waiting
	// for the result.
	awaited bool
	// pendingVersion is the resource version of the last write, until the cache has it.
	pendingVersion string
	// propagatedGeneration is the generation that was propagated before the profile was
	// written as not propagated, 0 for none.
	propagatedGeneration int64
	// completeGeneration is the generation of a ClusterCryptoProfile that is known in
	// all of its namespaces, 0 for none.
	completeGeneration int64
	// findings are the values of the metric for the profile.
	findings findings
}

// newMemory returns a memory of nothing. annotate is whether pods are annotated to make
// their kubelets refresh the profiles at once.
func newMemory(annotate bool) *memory {
	m := &memory{moving: movingDelay, profiles: map[string]map[string]remembered{}, numbersFrom: map[string]time.Time{}}
	if !annotate {
		m.moving = resyncDelay
	}
	return m
}

// update changes what is known of a profile.
func (m *memory) update(name types.NamespacedName, change func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.profiles[name.Namespace][name.Name]
	change(&known)
	if known == (remembered{}) {
		m.drop(name.Namespace, name.Name)
		return
	}
	if m.profiles[name.Namespace] == nil {
		m.profiles[name.Namespace] = map[string]remembered{}
	}
	m.profiles[name.Namespace][name.Name] = known
}

// drop removes a profile. The caller holds m.mu.
func (m *memory) drop(namespace, name string) {
	delete(m.profiles[namespace], name)
	if len(m.profiles[namespace]) == 0 {
		delete(m.profiles, namespace)
	}
}

// forget drops what is known of a profile that is gone.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name.Namespace, name.Name)
}

// retain drops what is known of profiles of a namespace that are gone, and of the
// namespace when none is left.
func (m *memory) retain(namespace string, exists func(name string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if len(m.profiles[namespace]) == 0 {
			delete(m.numbersFrom, namespace)
		}
	}()
	for name := range m.profiles[namespace] {
		if !exists(name) {
			m.drop(namespace, name)
		}
	}
}

// delay returns how long to wait before the status of a profile is written. differs
// says how the status differs from what is written, and settled is true when no broker is
// being updated. alike is the number of profiles whose writes for numbers the delay has to
// spread, this one included. If the status differs in numbers alone for which nobody waits,
// numbersSince is since when, else zero.
func (m *memory) delay(name types.NamespacedName, differs difference, settled bool, alike int, now time.Time) (delay time.Duration, numbersSince time.Time) {
	m.update(name, func(known *remembered) {
		known.awaited = known.awaited || differs == urgent
		switch {
		case differs == same:
			known.differsSince = time.Time{}
		case known.differsSince.IsZero():
			known.differsSince = now
		}
		if differs != same && differs != urgent {
			delay = max(0, known.differsSince.Add(known.patience(differs, settled, alike, m.moving)).Sub(now))
		}
		if differs == inNumbers && !known.awaited {
			numbersSince = known.differsSince
		}
		known.awaited = known.awaited && !settled
	})
	return delay, numbersSince
}

// numbersWait returns how long no status of a namespace may be written for numbers alone.
func (m *memory) numbersWait(namespace string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, m.numbersFrom[namespace].Sub(now))
}

// wroteNumbers remembers that so many statuses of a namespace were written for numbers
// alone since begin.
func (m *memory) wroteNumbers(namespace string, count int, begin time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbersFrom[namespace] = begin.Add(time.Duration(count) * numbersInterval)
}

// patience returns for how long a status may differ that is not urgent.
func (known *remembered) patience(differs difference, settled bool, alike int, moving time.Duration) time.Duration {
	shared := time.Duration(alike) * numbersInterval
	switch {
	case known.awaited && settled:
		return 0
	case known.awaited:
		return settledDelay
	case !settled:
		return max(moving, shared)
	case differs == inNumbers:
		return max(settledDelay, shared)
	default:
		return settledDelay
	}
}

// wrote remembers the resource version that a write returned.
func (m *memory) wrote(name types.NamespacedName, version string) {
	m.update(name, func(known *remembered) { known.differsSince, known.pendingVersion = time.Time{}, version })
}

// becamePropagated reports whether a status that was written says for the first time that
// its generation of the profile is propagated. before and after are the condition
// Propagated in the status before and in the one that was written; before is nil for
// none. A generation that was propagated, and is propagated again because another profile
// of the set changed meanwhile, is not new.
func (m *memory) becamePropagated(name types.NamespacedName, before, after *metav1.Condition) (isNew bool) {
	m.update(name, func(known *remembered) {
		switch {
		case before == nil:
			known.propagatedGeneration = 0
		case before.Status == metav1.ConditionTrue:
			known.propagatedGeneration = before.ObservedGeneration
		}
		if after.Status == metav1.ConditionTrue {
			isNew = known.propagatedGeneration != after.ObservedGeneration
			known.propagatedGeneration = 0 // the written condition says it from now on
		}
	})
	return isNew
}

// isBehind reports whether the cache has a version that is older than the last write.
func (m *memory) isBehind(name types.NamespacedName, version string) (behind bool) {
	m.update(name, func(known *remembered) {
		if behind = state.IsBehind(version, known.pendingVersion); !behind {
			known.pendingVersion = ""
		}
	})
	return behind
}

// isComplete reports whether this generation is known in all namespaces of the profile.
func (m *memory) isComplete(name types.NamespacedName, generation int64) (complete bool) {
	m.update(name, func(known *remembered) { complete = known.completeGeneration == generation })
	return complete
}

// setComplete remembers that this generation is known in all namespaces of the profile.
func (m *memory) setComplete(name types.NamespacedName, generation int64) {
	m.update(name, func(known *remembered) { known.completeGeneration = generation })
}
