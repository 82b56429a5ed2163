// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Ready has the reason and the message of another condition, source.
func TestTheConditionsReadyAndStalled(t *testing.T) {
	refused := func(reason string) render.Verdict { return render.Verdict{Reason: reason, Message: "What is wrong."} }
	tests := map[string]struct {
		summary          distribute.Summary
		verdict          render.Verdict
		ready, source    string
		stalledBecauseOf string
	}{
		"all brokers serve it":                           {distribute.Summary{Pods: 3, Updated: 3}, valid, "True AllUpdated", v1alpha1.ConditionPropagated, ""},
		"no broker runs":                                 {distribute.Summary{}, valid, "True NoPods", v1alpha1.ConditionPropagated, ""},
		"it selects no namespace":                        {distribute.Summary{}, render.Verdict{Accepted: true, Reason: v1alpha1.ReasonNoNamespaces}, "True NoPods", v1alpha1.ConditionPropagated, ""},
		"brokers are being updated":                      {distribute.Summary{Pods: 3, Updated: 1, Updating: 2}, valid, "False InProgress", v1alpha1.ConditionPropagated, ""},
		"a broker can't be asked":                        {distribute.Summary{Pods: 3, Updated: 2, Unverified: 1}, valid, "Unknown Unverified", v1alpha1.ConditionPropagated, ""},
		"brokers refuse the set":                         {distribute.Summary{Pods: 3, Refusing: 3}, valid, "False SetRefused", v1alpha1.ConditionDegraded, ""},
		"a broker is behind":                             {distribute.Summary{Pods: 3, Updated: 2, Behind: 1}, valid, "False TriesExhausted", v1alpha1.ConditionDegraded, ""},
		"the set is held, and all serve":                 {distribute.Summary{Pods: 1, Updated: 1}, render.Verdict{Accepted: true, Reason: v1alpha1.ReasonValid, Held: "Held."}, "False ProfilesHeld", v1alpha1.ConditionDegraded, ""},
		"it is wrong":                                    {distribute.Summary{Pods: 1}, refused(v1alpha1.ReasonInvalid), "False Invalid", v1alpha1.ConditionAccepted, "Invalid"},
		"it is weaker than what is served":               {distribute.Summary{Pods: 1}, refused(v1alpha1.ReasonDowngradeWithheld), "False DowngradeWithheld", v1alpha1.ConditionAccepted, "DowngradeWithheld"},
		"another object has its name":                    {distribute.Summary{Pods: 1}, refused(v1alpha1.ReasonConflict), "False Conflict", v1alpha1.ConditionAccepted, "Conflict"},
		"the set can't be written, which is tried again": {distribute.Summary{Pods: 1}, refused(v1alpha1.ReasonNotWritten), "False NotWritten", v1alpha1.ConditionAccepted, ""},
		"it is being deleted":                            {distribute.Summary{Pods: 1}, deleting, "False Deleting", v1alpha1.ConditionAccepted, ""},
	}
	rolling := valid
	rolling.Rolling = "sha256:2"
	c := conditions{"operators", 9470, true, newAssessments()}
	t.Run("its rollout has failed", func(t *testing.T) {
		p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders", Generation: 7}}
		p.Status.Rollout = &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutFailed, Digest: "sha256:2", Message: "Calls fail."}
		c.fill(&p.Status, p, &p.Spec, rolling, distribute.Summary{Pods: 3, Updated: 3})
		for name, status := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionPropagated: "False", v1alpha1.ConditionStalled: "True"} {
			if found := meta.FindStatusCondition(p.Status.Conditions, name); found == nil || found.Status != status || found.Reason != "RolloutFailed" || found.Message != "Calls fail." {
				t.Errorf("found %s %+v", name, found)
			}
		}
		c.fill(&p.Status, p, &p.Spec, valid, distribute.Summary{Pods: 3, Updated: 3})
		if meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled) != nil || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("found %+v after the change was taken back", p.Status.Conditions)
		}
	})
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders", Generation: 7}}
			// What was wrong before must not stay.
			before := render.Verdict{Reason: v1alpha1.ReasonTooLarge}
			c.fill(&p.Status, p, &p.Spec, before, distribute.Summary{})
			c.fill(&p.Status, p, &p.Spec, test.verdict, test.summary)

			ready, source := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(p.Status.Conditions, test.source)
			if found := string(ready.Status) + " " + ready.Reason; found != test.ready || ready.ObservedGeneration != 7 {
				t.Errorf("found Ready %s of generation %d, expected %s of 7", found, ready.ObservedGeneration, test.ready)
			}
			if ready.Reason != source.Reason || ready.Message != source.Message {
				t.Errorf("found %s: %s, expected what %s says: %s: %s", ready.Reason, ready.Message, source.Type, source.Reason, source.Message)
			}
			stalled := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled)
			switch {
			case test.stalledBecauseOf == "" && stalled != nil:
				t.Errorf("found the condition Stalled with %s, expected none", stalled.Reason)
			case test.stalledBecauseOf != "" && (stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.Reason != test.stalledBecauseOf || stalled.Message != test.verdict.Message):
				t.Errorf("found Stalled %+v, expected True with %s", stalled, test.stalledBecauseOf)
			}
		})
	}
}
