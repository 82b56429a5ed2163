// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
)

// withheldOf returns the changes of an object that are withheld.
func withheldOf(decided *state.Decision, kind, name string) []downgrade.Change {
	var changes []downgrade.Change
	for _, c := range decided.Withheld {
		if c.Source.Kind == kind && c.Source.Name == name {
			changes = append(changes, c)
		}
	}
	return changes
}

// setWithheld sets the condition DowngradeWithheld for the withheld changes of one object, and
// reports whether that changed the conditions.
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
	return statuspatch.SetCondition(conditions, c, generation)
}

// withheldMessage names the first of several changes, and one command that allows all. Changes of
// a ClusterCryptoProfile are equal in most of its namespaces.
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
		which = fmt.Sprintf("exactly the first %d of these changes, after which this condition lists the next ones", downgrade.MaxDigests)
	}
	return fmt.Sprintf("The profile %q is withheld in %d namespaces, where it is weaker than what was served, in %d ways. The first: %s To allow %s, somebody with the verb %q on it runs: %s",
		changes[0].Profile, len(changes), len(digests), strings.Join(changes[0].Sentences(), " "), which, downgrade.Verb, downgrade.Command(changes...))
}

// reportWithheld makes an event on a profile with changes that are withheld, where the
// event about the condition Accepted does not say so.
func (r *reporter) reportWithheld(object client.Object, before, after []metav1.Condition) {
	c := meta.FindStatusCondition(after, v1alpha1.ConditionDowngradeWithheld)
	if c == nil || c.Status != metav1.ConditionTrue || meta.FindStatusCondition(after, v1alpha1.ConditionAccepted).Reason == v1alpha1.ReasonDowngradeWithheld {
		return
	}
	if b := meta.FindStatusCondition(before, c.Type); b == nil || b.Status != c.Status || b.ObservedGeneration != c.ObservedGeneration {
		event.Record(r.recorder, object, corev1.EventTypeWarning, v1alpha1.ReasonDowngradeWithheld, actionRender, c.Message)
	}
}
