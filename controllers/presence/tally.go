// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// tally counts pods by namespace and direct owner. A pod that is created, changed or deleted
// changes only the numbers of its owner and of its namespace. The tally is in memory, and
// complete after one event of each pod and of each namespace. It is safe for concurrent use.
type tally struct {
	mu         sync.Mutex
	namespaces map[string]*namespaceTally
}

// namespaceTally is the tally of one namespace.
type namespaceTally struct {
	// label is the value of the injection label, and labelled reports whether there is one.
	label    string
	labelled bool
	// numbers are the sums over the owners.
	numbers numbers
	// pods are by name.
	pods   map[string]counted
	owners map[types.UID]*ownerTally
}

// numbers are numbers of pods by state.
type numbers [states]int

// missing returns how many pods should have a broker and have none. byDefault reports whether the
// namespace asks for brokers.
func (n numbers) missing(byDefault bool) int {
	if byDefault {
		return n[missing] + n[refused] + n[unasked]
	}
	return n[missing] + n[refused]
}

// counted has the state in which a pod was counted.
type counted struct {
	owner types.UID
	state state
}

// ownerTally is the tally of one owner of pods.
type ownerTally struct {
	reference corev1.ObjectReference
	numbers   numbers
	// refusals has the reason for each pod in the state refused, and waiting has the time since
	// which the broker of each pod in the state waiting runs. Both are by the name of the pod.
	refusals map[string]string
	waiting  map[string]time.Time
	// reported is the last event, or nil.
	reported *report
}

func newTally() *tally { return &tally{namespaces: map[string]*namespaceTally{}} }

// put counts a pod. If the pod was counted before, put replaces its state. It returns the owners
// about which there may be something to report.
func (t *tally) put(pod *corev1.Pod, seen observation) (concerned []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.namespace(pod.Namespace)
	owner := directOwner(pod)
	before, was := ns.pods[pod.Name]
	now := counted{owner.UID, seen.state}
	if at := time.Now(); seen.since.After(at) {
		seen.since = at // the clock of the node is ahead
	}
	if was {
		if since, waits := ns.owners[before.owner].waiting[pod.Name]; waits && since.Before(seen.since) {
			seen.since = since
		}
		ns.uncount(pod.Name, before)
	}
	ns.count(pod.Name, owner, seen)
	if was && before == now {
		return nil
	}
	if was {
		concerned = ns.concerned(before)
		ns.dropEmpty(before.owner)
	}
	if !was || before.owner != now.owner || len(concerned) == 0 {
		concerned = append(concerned, ns.concerned(now)...)
	}
	return concerned
}

// remove forgets a pod that is gone. It returns the owners about which there may be
// something to report.
func (t *tally) remove(pod *corev1.Pod) (concerned []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns, known := t.namespaces[pod.Namespace]
	if !known {
		return nil
	}
	if before, was := ns.pods[pod.Name]; was {
		ns.uncount(pod.Name, before)
		delete(ns.pods, pod.Name)
		concerned = ns.concerned(before)
		ns.dropEmpty(before.owner)
	}
	t.dropEmpty(pod.Namespace)
	return concerned
}

// setLabel stores the injection label of a namespace, and reports whether the label has a new
// value. It returns the owners about which there may be something to report: the owners of pods
// that get a broker only by the label.
func (t *tally) setLabel(namespace, value string, labelled bool) (concerned []types.UID, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.namespace(namespace)
	byDefault := ns.byDefault()
	isNew = labelled && (!ns.labelled || ns.label != value)
	ns.label, ns.labelled = value, labelled
	if ns.byDefault() != byDefault {
		for uid, o := range ns.owners {
			if o.numbers[unasked] > 0 {
				concerned = append(concerned, uid)
			}
		}
	}
	t.dropEmpty(namespace)
	return concerned, isNew
}

// of returns the numbers of an owner, and the time after which more brokers may have waited for
// longer than waitGrace, or 0.
func (t *tally) of(namespace string, owner types.UID, now time.Time) (f found, soon time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns, o := t.find(namespace, owner)
	if o == nil {
		return found{}, 0
	}
	f.owner = o.reference
	f.missing, f.refused, f.outdated = o.numbers.missing(ns.byDefault()), o.numbers[refused], o.numbers[outdated]
	for _, number := range o.numbers {
		f.pods += number
	}
	for _, refusal := range o.refusals {
		f.refusal = refusal
		break
	}
	for _, since := range o.waiting {
		if rest := waitGrace - now.Sub(since); rest > 0 {
			soon = max(soon, rest)
		} else {
			f.waiting++
		}
	}
	return f, soon
}

// reported returns the last event about an owner, or nil.
func (t *tally) reported(namespace string, owner types.UID) *report {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, o := t.find(namespace, owner); o != nil {
		return o.reported
	}
	return nil
}

// setReported stores the last event about an owner, or nil.
func (t *tally) setReported(namespace string, owner types.UID, last *report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, o := t.find(namespace, owner); o != nil {
		o.reported = last
	}
}

// find returns the tally of an owner, or nil. The caller holds t.mu.
func (t *tally) find(namespace string, owner types.UID) (*namespaceTally, *ownerTally) {
	ns, known := t.namespaces[namespace]
	if !known {
		return nil, nil
	}
	return ns, ns.owners[owner]
}

// namespace returns the tally of a namespace. The caller holds t.mu.
func (t *tally) namespace(name string) *namespaceTally {
	ns, known := t.namespaces[name]
	if !known {
		ns = &namespaceTally{pods: map[string]counted{}, owners: map[types.UID]*ownerTally{}}
		t.namespaces[name] = ns
	}
	return ns
}

// dropEmpty drops a namespace without pods and label. The caller holds t.mu.
func (t *tally) dropEmpty(name string) {
	if ns := t.namespaces[name]; len(ns.pods) == 0 && !ns.labelled {
		delete(t.namespaces, name)
	}
}

// byDefault reports whether the namespace asks for brokers.
func (ns *namespaceTally) byDefault() bool {
	return ns.labelled && ns.label == contract.InjectionEnabled
}

// concerned returns the owner of a pod in this state, if the pod can change an event.
func (ns *namespaceTally) concerned(pod counted) []types.UID {
	if pod.state == fine || pod.state == unasked && !ns.byDefault() {
		return nil
	}
	return []types.UID{pod.owner}
}

// count adds a pod to the numbers.
func (ns *namespaceTally) count(name string, owner corev1.ObjectReference, seen observation) {
	ns.pods[name] = counted{owner.UID, seen.state}
	ns.numbers[seen.state]++
	o, known := ns.owners[owner.UID]
	if !known {
		o = &ownerTally{reference: owner}
		ns.owners[owner.UID] = o
	}
	o.numbers[seen.state]++
	switch seen.state {
	case refused:
		if o.refusals == nil {
			o.refusals = map[string]string{}
		}
		o.refusals[name] = seen.refusal
	case waiting:
		if o.waiting == nil {
			o.waiting = map[string]time.Time{}
		}
		o.waiting[name] = seen.since
	}
}

// uncount subtracts a pod from the numbers.
func (ns *namespaceTally) uncount(name string, pod counted) {
	ns.numbers[pod.state]--
	o := ns.owners[pod.owner]
	o.numbers[pod.state]--
	delete(o.refusals, name)
	delete(o.waiting, name)
}

// dropEmpty drops an owner without pods.
func (ns *namespaceTally) dropEmpty(owner types.UID) {
	if o, known := ns.owners[owner]; known && o.numbers == (numbers{}) {
		delete(ns.owners, owner)
	}
}
