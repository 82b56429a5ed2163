// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

const (
	// DefaultLifetime is how long a key is current.
	DefaultLifetime = 2160 * time.Hour

	// LeastLifetime is the shortest lifetime of a key.
	LeastLifetime = time.Hour

	// keepRetired is the minimum time for which a key signs after its retirement. Until then, a
	// replica that has not read the new key, or an admission that began before, may make pods
	// that trust the retired key.
	keepRetired = time.Hour
)

// rotate makes a new current key, and retires the previous one.
func (r Ring) rotate(now time.Time) (Ring, error) {
	if n := 1 + len(r.retired); n >= signed.MaxSignatures && r.current.private != nil {
		return r, fmt.Errorf("there are %d signing keys, and a set can have no more signatures: restart the workloads whose pods trust the oldest keys, which are %s",
			n, strings.Join(oldest(r.retired), ", "))
	}
	k, err := newKey(now)
	if err != nil {
		return r, err
	}
	next := Ring{current: k, retired: slices.Clone(r.retired)}
	if r.current.private != nil {
		before := r.current
		before.since = now
		next.retired = append(next.retired, before)
	}
	slices.SortFunc(next.retired, func(a, b key) int { return strings.Compare(a.id, b.id) })
	return next, nil
}

// oldest returns the ids of the three keys that were retired first.
func oldest(keys []key) []string {
	sorted := slices.SortedFunc(slices.Values(keys), func(a, b key) int { return a.since.Compare(b.since) })
	var ids []string
	for _, k := range sorted[:min(3, len(sorted))] {
		ids = append(ids, k.id)
	}
	return ids
}

// prune removes retired keys that no running pod depends on any more. trusts are
// the ids that each running broker trusts.
func (r Ring) prune(trusts [][]string, now time.Time) (next Ring, removed []string) {
	next = Ring{current: r.current, retired: slices.Clone(r.retired)}
	for _, k := range r.retired {
		if now.Sub(k.since) < keepRetired {
			continue
		}
		without := slices.DeleteFunc(slices.Clone(next.retired), func(other key) bool { return other.id == k.id })
		rest := Ring{current: r.current, retired: without}
		if !slices.ContainsFunc(trusts, func(ids []string) bool { return slices.Contains(ids, k.id) && !rest.reaches(ids) }) {
			next, removed = rest, append(removed, k.id)
		}
	}
	return next, removed
}

// reaches reports whether a broker that trusts these keys accepts sets that this ring signs.
func (r Ring) reaches(ids []string) bool {
	return slices.Contains(ids, r.current.id) ||
		slices.ContainsFunc(r.retired, func(k key) bool { return slices.Contains(ids, k.id) })
}

// TrustedBy returns the ids of the keys that a running pod's broker trusts.
func TrustedBy(pod *corev1.Pod) []string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	broker := injected.Broker(pod)
	if broker == nil {
		return nil
	}
	list, _ := contract.ArgumentOf(broker.Args, contract.TrustedKeysFlag)
	var ids []string
	for text := range strings.SplitSeq(list, ",") {
		// A text that is not a key is left out, because a broker with it does not start.
		if public, err := signed.ParseKey(text); err == nil {
			ids = append(ids, signed.KeyID(public))
		}
	}
	return ids
}
