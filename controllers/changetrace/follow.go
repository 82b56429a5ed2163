// SPDX-License-Identifier: Apache-2.0

package changetrace

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progress is the progress of a change.
type progress struct {
	change Change
	ids    ids
	seen   time.Time
	// parts are the namespaces in which the change is not complete.
	parts map[*part]struct{}
	timer *time.Timer

	namespaces, written, pods, confirmed, gone int
	// sets and brokers are the last maxSpans sets and brokers.
	sets    []set
	brokers []Broker
}

// part is a change in one namespace.
type part struct {
	of        *progress
	namespace string
	// decided reports whether the namespace has a set with the change, or a set that the change
	// does not affect. waiting are the pods whose brokers have not confirmed that set.
	decided bool
	waiting map[string]struct{}
	set     set
}

// set has the times of the steps of a namespace's set. A time is zero if the step did not happen.
type set struct {
	namespace                string
	began, compiled, written time.Time
	digest                   string
	revision                 int64
	annotated                int
	lastAnnotated            time.Time
}

// Broker is the broker of a pod.
type Broker struct {
	Pod types.NamespacedName
	UID types.UID
	// Written is the time at which the set was written, or zero if this process has not written
	// it. Tries is the number of times that this process has annotated the pod since then.
	Written time.Time
	Tries   int
	// Annotated is the time of the last annotation of the pod.
	Annotated time.Time
	// Confirmed is the time at which the broker first confirmed the set, or zero.
	Confirmed time.Time
}

// Seen begins to follow a change that concerns some namespaces.
func (t *Tracer) Seen(c Change, namespaces []string) {
	if t == nil {
		return
	}
	ids := c.ids("")
	if !t.spans.Samples(ids.trace) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changes) >= maxChanges {
		return
	}
	p := &progress{change: c, ids: ids, seen: time.Now(), namespaces: len(namespaces), parts: map[*part]struct{}{}}
	t.changes[p] = struct{}{}
	for _, name := range namespaces {
		one := &part{of: p, namespace: name}
		p.parts[one] = struct{}{}
		t.parts[name] = append(t.parts[name], one)
	}
	if len(namespaces) == 0 {
		t.finish(p)
		return
	}
	p.timer = time.AfterFunc(limit, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.finish(p)
	})
}

// Pass is one reconciliation of a namespace with changes that are followed. Its methods do nothing
// if it is nil.
type Pass struct {
	tracer    *Tracer
	namespace string
	parts     []*part
	set       set
}

// Begin begins a reconciliation of a namespace, before it reads the profiles. It returns nil if no
// change is followed there.
func (t *Tracer) Begin(namespace string) *Pass {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []*part
	for _, one := range t.parts[namespace] {
		if !one.decided {
			parts = append(parts, one)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return &Pass{tracer: t, namespace: namespace, parts: parts, set: set{namespace: namespace, began: time.Now()}}
}

// Compiled records that the set is compiled and signed.
func (p *Pass) Compiled() {
	if p != nil {
		p.set.compiled = time.Now()
	}
}

// Written records that the set is in the namespace's ConfigMap.
func (p *Pass) Written(digest string, revision int64) {
	if p != nil {
		p.set.written, p.set.digest, p.set.revision = time.Now(), digest, revision
	}
}

// Since returns the time at which the pass began.
func (p *Pass) Since() time.Time { return p.set.began }

// Done ends a reconciliation that has not failed. brokers are the brokers of the namespace that have
// confirmed its set since the pass began, or have not confirmed it. From now on they are followed
// by [Tracer.Confirmed] and [Tracer.Left].
func (p *Pass) Done(brokers []Broker) {
	if p == nil {
		return
	}
	t := p.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range p.parts {
		if _, followed := one.of.parts[one]; !followed || one.decided {
			continue
		}
		one.decided, one.set, one.waiting = true, p.set, map[string]struct{}{}
		one.of.pods += len(brokers)
		if !p.set.written.IsZero() {
			one.of.written++
		}
		for _, b := range brokers {
			if one.set.annotated += b.Tries; b.Tries > 0 {
				one.set.lastAnnotated = latest(one.set.lastAnnotated, b.Annotated)
			}
			if one.waiting[b.Pod.Name] = struct{}{}; !b.Confirmed.IsZero() {
				t.confirmed(one, b)
			}
		}
		if len(one.waiting) == 0 {
			t.end(one)
		}
	}
}

// Annotated records that a pod was annotated.
func (t *Tracer) Annotated(pod types.NamespacedName, at time.Time) {
	t.each(pod, func(one *part) {
		one.set.annotated++
		one.set.lastAnnotated = at
	})
}

// Confirmed records that a broker confirmed the set of its namespace.
func (t *Tracer) Confirmed(b Broker) {
	t.each(b.Pod, func(one *part) { t.confirmed(one, b) })
}

// Left records that a pod is gone.
func (t *Tracer) Left(pod types.NamespacedName) {
	t.each(pod, func(one *part) {
		delete(one.waiting, pod.Name)
		one.of.gone++
	})
}

// Forget records that a namespace is gone, or gets no profiles.
func (t *Tracer) Forget(namespace string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range slices.Clone(t.parts[namespace]) {
		one.of.gone += len(one.waiting)
		t.end(one)
	}
}

// each calls note with each change that waits for a pod, and ends changes that wait for no other
// pod.
func (t *Tracer) each(pod types.NamespacedName, note func(*part)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range slices.Clone(t.parts[pod.Namespace]) {
		if _, waits := one.waiting[pod.Name]; !waits {
			continue
		}
		note(one)
		if len(one.waiting) == 0 {
			t.end(one)
		}
	}
}

// confirmed records a broker of a part. The caller holds t.mu.
func (t *Tracer) confirmed(one *part, b Broker) {
	delete(one.waiting, b.Pod.Name)
	if b.Written.IsZero() {
		b.Written = one.set.began
	}
	one.of.confirmed++
	one.of.brokers = last(one.of.brokers, b)
}

// end ends a change in one namespace, and the change if that was the last one. The caller holds
// t.mu.
func (t *Tracer) end(one *part) {
	t.drop(one)
	if one.decided {
		one.of.sets = last(one.of.sets, one.set)
	}
	if len(one.of.parts) == 0 {
		t.finish(one.of)
	}
}

// drop stops to follow a change in one namespace. The caller holds t.mu.
func (t *Tracer) drop(one *part) {
	delete(one.of.parts, one)
	rest := slices.DeleteFunc(t.parts[one.namespace], func(other *part) bool { return other == one })
	if t.parts[one.namespace] = rest; len(rest) == 0 {
		delete(t.parts, one.namespace)
	}
}

// last adds an element, and keeps the last maxSpans.
func last[T any](all []T, one T) []T {
	if len(all) == maxSpans {
		all = slices.Delete(all, 0, 1)
	}
	return append(all, one)
}
