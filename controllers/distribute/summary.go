// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
)

// class is the state in which a broker is counted.
type class int

const (
	uncounted  class = iota // does not run, or has just begun to
	checking                // was not asked yet
	updated                 // says that it serves the target
	partial                 // as updated, without some profiles of the set
	updating                // says that it serves another set, and more is being tried
	behind                  // like updating, but all attempts were made
	refusing                // like behind, and reports that it refused a newer set
	waiting                 // has no set yet, for longer than it should take
	unverified              // can't be asked
)

func (b *broker) class(now time.Time) class {
	switch {
	case b.target.Digest == "" || b.pod.running.IsZero():
		return uncounted
	case !b.pod.started && now.Sub(b.pod.running) < waitingIsBehind:
		return uncounted
	case !b.pod.started:
		return waiting
	case !b.pod.address.IsValid():
		return unverified
	case !b.known && b.failures >= unverifiedAfter:
		return unverified
	case !b.known:
		return checking
	case b.stale && b.serves():
		return checking
	case b.serves() && b.answer.Reason == string(directory.ProfilesRejected):
		return partial
	case b.serves():
		return updated
	case !b.exhausted():
		return updating
	case refused(b.answer.Reason):
		return refusing
	default:
		return behind
	}
}

// refused reports whether a broker gives this reason for refusing what its directory
// holds.
func refused(reason string) bool {
	switch directory.Reason(reason) {
	case directory.SetRejected, directory.SignatureRejected, directory.RevisionRejected, directory.NotKept:
		return true
	}
	return false
}

// Summary has the numbers of brokers of a namespace.
type Summary struct {
	// Digest is the set that the numbers are about.
	Digest string
	// Pods is the number of brokers that run: the sum of Checking, Updated, Updating, Behind,
	// Refusing, Waiting and Unverified.
	Pods int
	// Checking is the number of brokers that were not asked yet.
	Checking int
	// Updated is the number of brokers that serve the set. Partial is the number of brokers of
	// Updated that leave out profiles of the set.
	Updated, Partial int
	// WithdrawnSince is about one profile. It is the time at which the first of Partial took the
	// profile out of service, or zero. See [Distributor.Withdrawn].
	WithdrawnSince time.Time
	// Updating is the number of brokers that serve another set while the operator still tries to
	// bring them the new one.
	Updating int
	// Behind is the number of brokers that serve another set after all tries of the operator.
	Behind int
	// Refusing is the number of brokers that are as in Behind, and that say that they refused a
	// newer set.
	Refusing int
	// Waiting is the number of brokers that have had no set for longer than it should take.
	Waiting int
	// Unverified is the number of brokers that cannot be asked.
	Unverified int
	// Old is the number of brokers of Partial, Refusing and Waiting that differ from the brokers
	// of new pods.
	Old int
	// Took is the time from writing the set to the last confirmation. It is 0 if this process did
	// not write the set, or if no broker has confirmed it.
	Took time.Duration
}

// Summary counts the brokers of a namespace.
func (d *Distributor) Summary(name string) Summary {
	d.mu.Lock()
	defer d.mu.Unlock()
	ns, ok := d.namespaces[name]
	if !ok {
		return Summary{}
	}
	return ns.summary(time.Now())
}

func (ns *namespace) summary(now time.Time) Summary {
	s := Summary{Digest: ns.target.Digest}
	for _, b := range ns.brokers {
		c := b.class(now)
		switch c {
		case uncounted:
			continue
		case checking:
			s.Checking++
		case partial:
			s.Partial++
			s.Updated++
		case updated:
			s.Updated++
		case updating:
			s.Updating++
		case behind:
			s.Behind++
		case refusing:
			s.Refusing++
		case waiting:
			s.Waiting++
		case unverified:
			s.Unverified++
		}
		s.Pods++
		if b.outdated && (c == partial || c == refusing || c == waiting) {
			s.Old++
		}
		if b.isTimed() {
			s.Took = max(s.Took, b.confirmed.Sub(ns.target.Written))
		}
	}
	return s
}

// Withdrawn returns when the first of the brokers of a namespace took each profile of the
// set out of service that it had served, by the name of the profile; nil if none did.
func (d *Distributor) Withdrawn(name string) map[string]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	ns, ok := d.namespaces[name]
	if !ok {
		return nil
	}
	return ns.withdrawn(time.Now())
}

func (ns *namespace) withdrawn(now time.Time) (since map[string]time.Time) {
	for _, b := range ns.brokers {
		if b.class(now) != partial {
			continue
		}
		for _, out := range b.answer.Withdrawn {
			if since == nil {
				since = map[string]time.Time{}
			}
			since[out.Profile] = Earlier(since[out.Profile], out.Since)
		}
	}
	return since
}

// Earlier returns the earlier of two times, and ignores one that is zero.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
