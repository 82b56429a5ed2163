// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// settledDelay is how long a status waits that differs only in numbers. So pods that are created
// and deleted, and brokers that take a set one after the other, cause one write. The numbers at
// the end of a change that somebody may be waiting for are written at once.
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

// difference is the kind of the difference between a status and the written one.
type difference int

const (
	same      difference = iota
	inNumbers            // the statuses differ only in numbers, and in messages with numbers
	inReasons            // also in the status or the reason of a condition, but nobody waits for this change
	urgent               // in something that somebody may be waiting for
)

// memory is the memory of one reconciler about the statuses that it writes. It decides when a
// status is written. It is safe for concurrent use.
type memory struct {
	// moving is how long numbers wait while brokers are being updated.
	moving time.Duration

	mu sync.Mutex
	// profiles are by namespace, which is empty for a ClusterCryptoProfile, and by name.
	profiles map[string]map[string]remembered
	// numbersFrom is the time from which statuses of a namespace may be written that differ only
	// in numbers.
	numbersFrom map[string]time.Time
}

// remembered is the memory of one profile. It is dropped when it is empty.
type remembered struct {
	// differsSince is the time since which the status differs from the written one.
	differsSince time.Time
	// awaited reports whether the profile itself changed, so that somebody may be waiting for the
	// result.
	awaited bool
	// pendingVersion is the resource version of the last write, until the cache has it.
	pendingVersion string
	// propagatedGeneration is the generation that was propagated before the profile was written
	// as not propagated, or 0.
	propagatedGeneration int64
	// completeVersion is the version of a ClusterCryptoProfile that is known in all of its
	// namespaces, or zero.
	completeVersion render.Version
	// findings are the values of the metric for the profile.
	findings findings
}

// newMemory returns an empty memory. annotate reports whether pods are annotated to make their
// kubelets refresh the profiles at once.
func newMemory(annotate bool) *memory {
	m := &memory{moving: movingDelay, profiles: map[string]map[string]remembered{}, numbersFrom: map[string]time.Time{}}
	if !annotate {
		m.moving = resyncDelay
	}
	return m
}

// update changes the memory of a profile.
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

// forget drops the memory of a profile that is gone.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name.Namespace, name.Name)
}

// retain drops the memory of profiles of a namespace that are gone, and of the namespace if none
// is left.
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

// delay returns how long to wait before the status of a profile is written. differs is the
// difference from the written status, and settled reports whether no broker is being updated.
// alike is the number of profiles, including this one, whose writes for numbers the delay has to
// spread. If the status differs only in numbers for which nobody waits, numbersSince is the time
// since which it differs, and otherwise zero.
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

// wroteNumbers records that this many statuses of a namespace were written only for numbers since
// begin.
func (m *memory) wroteNumbers(namespace string, count int, begin time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbersFrom[namespace] = begin.Add(time.Duration(count) * numbersInterval)
}

// patience returns how long a status that is not urgent may differ.
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

// wrote stores the resource version that a write returned.
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
			known.propagatedGeneration = 0 // from now on the written condition has this information
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

// isComplete reports whether this version is known in all namespaces of the profile.
func (m *memory) isComplete(name types.NamespacedName, version render.Version) (complete bool) {
	m.update(name, func(known *remembered) { complete = known.completeVersion == version })
	return complete
}

// setComplete remembers that this version is known in all namespaces of the profile.
func (m *memory) setComplete(name types.NamespacedName, version render.Version) {
	m.update(name, func(known *remembered) { known.completeVersion = version })
}
