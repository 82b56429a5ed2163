// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// totals has the state of each ClusterCryptoProfile in each of its namespaces, and the sums over
// the namespaces. The cost of an update of one namespace does not depend on their number. It is
// safe for concurrent use.
type totals struct {
	mu sync.Mutex
	// profiles are the sums by metadata.name.
	profiles map[string]*sums
	// namespaces are the names of the profiles that are known in a namespace.
	namespaces map[string][]string
}

func newTotals() *totals {
	return &totals{profiles: map[string]*sums{}, namespaces: map[string][]string{}}
}

// share is the state of a profile in one namespace.
type share struct {
	inNamespace
	verdict render.Verdict
	// brokers has the brokers of the namespace. Its profiles share it, and it is not changed.
	brokers  *distribute.Summary
	withheld []downgrade.Change
}

// special reports whether the namespace has more to report than the sums.
func (s *share) special() bool {
	return len(s.withheld) > 0 || s.verdict.Held != "" || s.brokers.Partial > 0
}

// sums are the sums of a profile over its namespaces.
type sums struct {
	shares map[string]*share
	// ordered has the shares, the most severe first.
	ordered []*share
	brokers distribute.Summary
	refused int
	// rolling counts the shares in which the profile has not reached all brokers, and
	// rollingWith is the digest of the profile there.
	rolling     int
	rollingWith string
	// versions counts the shares by the version of the profile that they are about.
	versions map[render.Version]int
	// special are the namespaces that have more to report than numbers.
	special map[string]bool
}

// update replaces the states of profiles in a namespace, by metadata.name. It returns the names
// of the profiles for which something changed. An empty map removes the namespace.
func (t *totals) update(namespace string, shares map[string]*share) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.namespaces[namespace] {
		if _, still := shares[name]; !still {
			t.profiles[name].remove(namespace)
			changed = append(changed, name)
			if len(t.profiles[name].shares) == 0 {
				delete(t.profiles, name)
			}
		}
	}
	for name, s := range shares {
		all, known := t.profiles[name]
		if !known {
			all = &sums{shares: map[string]*share{}, versions: map[render.Version]int{}, special: map[string]bool{}}
			t.profiles[name] = all
		}
		if before := all.shares[namespace]; before == nil || !reflect.DeepEqual(before, s) {
			all.remove(namespace)
			all.add(namespace, s)
			changed = append(changed, name)
		}
	}
	if len(shares) == 0 {
		delete(t.namespaces, namespace)
	} else {
		t.namespaces[namespace] = slices.Collect(maps.Keys(shares))
	}
	return changed
}

func (a *sums) add(namespace string, s *share) {
	a.shares[namespace] = s
	i, _ := slices.BinarySearchFunc(a.ordered, s, bySeverity)
	a.ordered = slices.Insert(a.ordered, i, s)
	a.brokers = addUp(a.brokers, *s.brokers, 1)
	a.versions[s.verdict.Version]++
	if !s.verdict.Accepted {
		a.refused++
	}
	if s.verdict.Rolling != "" {
		a.rolling, a.rollingWith = a.rolling+1, s.verdict.Rolling
	}
	if s.special() {
		a.special[namespace] = true
	}
}

func (a *sums) remove(namespace string) {
	s, known := a.shares[namespace]
	if !known {
		return
	}
	delete(a.shares, namespace)
	if i, found := slices.BinarySearchFunc(a.ordered, s, bySeverity); found {
		a.ordered = slices.Delete(a.ordered, i, i+1)
	}
	a.brokers = addUp(a.brokers, *s.brokers, -1)
	if a.versions[s.verdict.Version]--; a.versions[s.verdict.Version] == 0 {
		delete(a.versions, s.verdict.Version)
	}
	if !s.verdict.Accepted {
		a.refused--
	}
	if s.verdict.Rolling != "" {
		a.rolling--
	}
	delete(a.special, namespace)
}

// of returns the total of a profile. It returns false while the state in a namespace is about
// another version of it.
func (t *totals) of(name string, version render.Version) (total, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, known := t.profiles[name]
	if !known {
		return total{}, true
	}
	if a.versions[version] != len(a.shares) {
		return total{}, false
	}
	all := total{namespaces: len(a.shares), brokers: a.brokers, refused: a.refused, perNamespace: listed(a.ordered)}
	if a.rolling > 0 {
		all.rolling = a.rollingWith
	}
	if a.refused > 0 { // they are the most severe
		all.refusedIn, all.refusedWith = a.ordered[0].status.Name, a.ordered[0].verdict
	}
	for _, namespace := range slices.Sorted(maps.Keys(a.special)) {
		s := a.shares[namespace]
		all.withheld = append(all.withheld, s.withheld...)
		if s.verdict.Held != "" && all.held == "" {
			all.heldIn, all.held = namespace, s.verdict.Held
		}
		if s.brokers.Partial > 0 {
			all.partial = append(all.partial, namespace)
		}
	}
	return all, true
}

// count returns the number of profiles that are known in some namespace.
func (t *totals) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.profiles)
}

// took returns the longest time that a set with the profile took to reach its last
// broker.
func (t *totals) took(name string) (longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a, known := t.profiles[name]; known {
		for _, s := range a.shares {
			longest = max(longest, s.brokers.Took)
		}
	}
	return longest
}

// addUp adds the numbers of a namespace to a sum, or subtracts them with a sign of -1. It ignores
// fields that are not numbers of brokers.
func addUp(a, b distribute.Summary, sign int) distribute.Summary {
	return distribute.Summary{
		Pods:       a.Pods + sign*b.Pods,
		Checking:   a.Checking + sign*b.Checking,
		Updated:    a.Updated + sign*b.Updated,
		Partial:    a.Partial + sign*b.Partial,
		Updating:   a.Updating + sign*b.Updating,
		Behind:     a.Behind + sign*b.Behind,
		Refusing:   a.Refusing + sign*b.Refusing,
		Waiting:    a.Waiting + sign*b.Waiting,
		Unverified: a.Unverified + sign*b.Unverified,
		Old:        a.Old + sign*b.Old,
	}
}
