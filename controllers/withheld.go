// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// withheldOf is what the outcome withholds of an object.
func (o outcome) withheldOf(kind, name string) []downgrade.Change {
	var changes []downgrade.Change
	for _, c := range o.withheld {
		if c.Source.Kind == kind && c.Source.Name == name {
			changes = append(changes, c)
		}
	}
	return changes
}

// setWithheld sets the condition DowngradeWithheld for the changes that are
// withheld of one object, and returns true when that changed it. Changes of a
// ClusterCryptoProfile are alike in most of its namespaces.
func setWithheld(conditions *[]metav1.Condition, generation int64, changes []downgrade.Change) bool {
	c := metav1.Condition{Type: v1alpha1.ConditionDowngradeWithheld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWeaker}
	switch {
	case len(changes) > 0:
		c.Message = withheldMessage(changes)
	case meta.FindStatusCondition(*conditions, c.Type) != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNothingWithheld, "Nothing of the profile is withheld."
	default:
		return false
	}
	return set(conditions, c, generation)
}

// withheldMessage tells the first of different changes, and one command for all.
func withheldMessage(changes []downgrade.Change) string {
	digests := map[string]int{}
	for _, c := range changes {
		digests[c.Digest]++
	}
	if len(digests) == 1 {
		return changes[0].Withheld()
	}
	which := "exactly these changes"
	if len(digests) > downgrade.MaxDigests {
		which = fmt.Sprintf("exactly the first %d of these changes, after which the next are told", downgrade.MaxDigests)
	}
	return fmt.Sprintf("The profile %q is withheld in %d namespaces, where it is weaker than what was served, in %d ways. The first: %s To allow %s, somebody with the verb %q on it runs: %s",
		changes[0].Profile, len(changes), len(digests), strings.Join(changes[0].Sentences(), " "), which, downgrade.Verb, downgrade.Command(changes...))
}

// tellWithheld announces on a profile that something of it is withheld, where the
// event about the condition Accepted does not say that.
func (a *announcer) tellWithheld(object client.Object, before, after []metav1.Condition) {
	c := meta.FindStatusCondition(after, v1alpha1.ConditionDowngradeWithheld)
	if c == nil || c.Status != metav1.ConditionTrue || meta.FindStatusCondition(after, v1alpha1.ConditionAccepted).Reason == v1alpha1.ReasonDowngradeWithheld {
		return
	}
	if b := meta.FindStatusCondition(before, c.Type); b == nil || b.Status != c.Status || b.ObservedGeneration != c.ObservedGeneration {
		a.event(object, corev1.EventTypeWarning, v1alpha1.ReasonDowngradeWithheld, actionRender, c.Message)
	}
}

// weakened announces on the objects that a change which makes a profile weaker
// was allowed and is written.
func (a *announcer) weakened(ctx context.Context, namespace string, changes []downgrade.Change) {
	for _, c := range changes {
		var object client.Object = &v1alpha1.CryptoProfile{}
		if c.Source.Kind == downgrade.KindCluster {
			object = &v1alpha1.ClusterCryptoProfile{}
		}
		key := client.ObjectKey{Namespace: c.Source.Namespace, Name: c.Source.Name}
		if err := a.client.Get(ctx, key, object); err != nil {
			log.FromContext(ctx).Error(err, "a weaker profile was allowed, and no event tells so", "profile", c.Profile, "source", c.Source.String())
			continue
		}
		a.event(object, corev1.EventTypeWarning, eventWeakened, actionRender, fmt.Sprintf("The profile %q of namespace %q is weaker from now on, as was allowed. %s", c.Profile, namespace, strings.Join(c.Sentences(), " ")))
	}
}
