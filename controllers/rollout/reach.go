// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// Digest identifies the part of a profile that brokers get.
func Digest(p profile.Profile) string {
	sum := sha256.Sum256(downgrade.Canonical(p))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Rollouts are the rollouts of the objects that have one.
type Rollouts map[downgrade.Source]rollout

// rollout is spec.rollout and status.rollout of an object.
type rollout struct {
	spec   *v1alpha1.Rollout
	status *v1alpha1.RolloutStatus
}

// Of returns the rollouts of objects.
func Of(namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) Rollouts {
	all := Rollouts{}
	for i := range namespaced {
		if p := &namespaced[i]; p.Spec.Rollout != nil {
			all[downgrade.Source{Kind: downgrade.KindNamespaced, Namespace: p.Namespace, Name: p.Name}] = rollout{p.Spec.Rollout, p.Status.Rollout}
		}
	}
	for i := range cluster {
		if p := &cluster[i]; p.Spec.Rollout != nil {
			all[downgrade.Source{Kind: downgrade.KindCluster, Name: p.Name}] = rollout{p.Spec.Rollout, p.Status.Rollout}
		}
	}
	return all
}

// Change is a change of a profile that does not reach all brokers of a namespace yet.
type Change struct {
	downgrade.Candidate
	// Digest identifies the new profile.
	Digest string
	rollout
}

// Keep separates the candidates that are rolled out. It returns all candidates, with the served
// profile instead of each one that is rolled out, and the changes that are rolled out. A
// candidate is rolled out if the namespace serves another profile of its name and the rollout is
// not complete. It is not rolled out if the guard withholds it. It is not rolled out either if it
// replaces a profile below the minimum strength, because that profile must not be served any
// longer, so the new one reaches all brokers.
func (r Rollouts) Keep(served downgrade.State, candidates []downgrade.Candidate, j downgrade.Judgement, minimum int) (kept []downgrade.Candidate, rolling []Change) {
	for i, c := range candidates {
		of, is := r[c.Source]
		old, was := served.ServedAs(c.Profile.Name)
		if !is || !was || served.Serves(c.Profile) || j.IsWithheld(c.Source) || !downgrade.MeetsMinimum(old, minimum) {
			continue
		}
		digest := Digest(c.Profile)
		if of.isComplete(digest) {
			continue
		}
		if rolling == nil {
			kept = slices.Clone(candidates)
		}
		kept[i].Profile = old
		rolling = append(rolling, Change{c, digest, of})
	}
	if rolling == nil {
		return candidates, nil
	}
	return kept, rolling
}

// isComplete reports whether the rollout of exactly this profile is complete.
func (r rollout) isComplete(digest string) bool {
	return r.status != nil && r.status.Phase == v1alpha1.RolloutComplete && r.status.Digest == digest
}

// Reach returns the first place that the new profile has not reached in a namespace with these
// labels. No place is reached if the status is about another change.
func (c Change) Reach(namespace map[string]string) int64 {
	return c.reach(c.Digest, namespace)
}

func (r rollout) reach(digest string, namespace map[string]string) int64 {
	switch {
	case r.status == nil, r.status.Digest != digest, r.status.Phase == v1alpha1.RolloutReturned:
		return 0
	case selects(r.spec, r.status.Step, namespace):
		return profile.RolloutPlaces
	}
	return r.status.Below
}

// selects reports whether a step, or one before it, selects a namespace with these labels.
func selects(spec *v1alpha1.Rollout, step int32, namespace map[string]string) bool {
	for _, s := range spec.Steps[:min(int(step), len(spec.Steps))] {
		if s.NamespaceSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s.NamespaceSelector)
		if err == nil && selector.Matches(labels.Set(namespace)) { // the webhook refuses selectors with an error
			return true
		}
	}
	return false
}
