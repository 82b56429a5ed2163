// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

var valid = render.Verdict{Accepted: true, Reason: v1alpha1.ReasonValid}

func TestTheConditionDegraded(t *testing.T) {
	tests := map[string]struct {
		summary      distribute.Summary
		verdict      render.Verdict
		notAnnotated bool
		status       string
		says         string
	}{
		"all is well": {
			summary: distribute.Summary{Pods: 3, Updated: 3}, verdict: valid, status: "False AsExpected", says: "Nothing is wrong.",
		},
		"what is under way is not wrong": {
			summary: distribute.Summary{Pods: 3, Updating: 2, Checking: 1}, verdict: valid, status: "False AsExpected", says: "Nothing is wrong.",
		},
		"nor is a broker that can't be asked, which may be meant so": {
			summary: distribute.Summary{Pods: 3, Updated: 2, Unverified: 1}, verdict: valid, status: "False AsExpected", says: "Nothing is wrong.",
		},
		"a profile that is not accepted": {
			summary: distribute.Summary{Pods: 3}, verdict: render.Verdict{Reason: v1alpha1.ReasonConflict}, status: "True NotAccepted", says: "see the condition Accepted",
		},
		"a set that could not be written": {
			summary: distribute.Summary{Pods: 3}, verdict: render.Verdict{Reason: v1alpha1.ReasonNotWritten, Message: "No quota."}, status: "True NotWritten", says: "No quota.",
		},
		"brokers of an older operator refuse the set, which says what to do": {
			summary: distribute.Summary{Pods: 5, Updated: 2, Refusing: 3, Old: 2}, verdict: valid, status: "True BrokersTooOld", says: "2 of 5 brokers do not take the set as it is, and were made by another version of the operator, or with other settings, than a new pod's. Restart the pods' workloads",
		},
		"a broker as they are now refuses it": {
			summary: distribute.Summary{Pods: 2, Updated: 1, Refusing: 1}, verdict: valid, status: "True SetRefused", says: "1 of 2 brokers refuses the set and serves an older one. The broker's log says why: kubectl logs POD -c crypto-broker.",
		},
		"a broker has no set": {
			summary: distribute.Summary{Pods: 2, Updated: 1, Waiting: 1}, verdict: valid, status: "True BrokersWithoutSet", says: "1 of 2 brokers has no set, so its pod does not start.",
		},
		"all tries are made": {
			summary: distribute.Summary{Pods: 2, Behind: 2}, verdict: valid, status: "True TriesExhausted", says: "2 of 2 brokers serve an older set after 4 annotations",
		},
		"the kubelet is left to itself": {
			summary: distribute.Summary{Pods: 2, Behind: 1}, verdict: valid, notAnnotated: true, status: "True TriesExhausted", says: "1 of 2 brokers serves an older set since pods are not annotated to make the kubelet sync at once, whose own resync takes up to 90 s.",
		},
		"brokers left profiles out": {
			summary: distribute.Summary{Pods: 2, Updated: 2, Partial: 2}, verdict: valid, status: "True ProfilesRefused", says: "2 of 2 brokers serve the set without some of its profiles, this one or others, whose callers get FAILED_PRECONDITION",
		},
		"brokers took the profile out of service": {
			summary: distribute.Summary{Pods: 2, Updated: 2, Partial: 1, WithdrawnSince: time.Date(2026, 11, 20, 13, 0, 0, 0, time.FixedZone("CET", 3600))}, verdict: valid, status: "True ProfilesRefused",
			says: "1 of 2 brokers serves the set without some of its profiles. This one was served and is out of service since 2026-11-20T12:00:00Z: its callers get FAILED_PRECONDITION with the problem.",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			c := conditions{"operators", 9470, !test.notAnnotated, newAssessments()}.degraded(test.summary, test.verdict)
			if found := string(c.Status) + " " + c.Reason; found != test.status || !strings.Contains(c.Message, test.says) {
				t.Errorf("found %s: %s", found, c.Message)
			}
		})
	}
}

func TestAStatusTellsOfTheWorstNamespacesAndOfFiftyAtMost(t *testing.T) {
	p := conditions{"operators", 9470, true, newAssessments()}
	const digest = "sha256:00"
	namespaces := []inNamespace{
		p.inNamespace("unasked", digest, valid, distribute.Summary{Pods: 1, Unverified: 1}),
		p.inNamespace("conflicting", digest, render.Verdict{Reason: v1alpha1.ReasonConflict}, distribute.Summary{Pods: 1, Updated: 1}),
		p.inNamespace("moving", digest, valid, distribute.Summary{Pods: 2, Updating: 1, Updated: 1}),
		p.inNamespace("behind-much", digest, valid, distribute.Summary{Pods: 9, Behind: 9}),
		p.inNamespace("behind-little", digest, valid, distribute.Summary{Pods: 9, Behind: 1, Updated: 8}),
	}
	for i := range 100 {
		namespaces = append(namespaces, p.inNamespace(fmt.Sprintf("fine-%02d", i), digest, valid, distribute.Summary{Pods: 1, Updated: 1}))
	}
	slices.Reverse(namespaces)
	tally := newTotals()
	for _, in := range namespaces {
		tally.update(in.status.Name, map[string]*share{"orders": {inNamespace: in, brokers: &distribute.Summary{}}})
	}
	all, _ := tally.of("orders", render.Version{})
	found := all.perNamespace
	if len(found) != v1alpha1.MaxPerNamespace {
		t.Fatalf("found %d namespaces", len(found))
	}
	var order []string
	for _, in := range found[:7] {
		order = append(order, in.Name+" "+in.State)
	}
	want := []string{"conflicting Conflict", "behind-much Behind", "behind-little Behind", "moving InProgress", "unasked Unverified", "fine-00 AllUpdated", "fine-01 AllUpdated"}
	if !slices.Equal(order, want) {
		t.Errorf("found %q, expected %q", order, want)
	}
	if found[0].Digest != "" || found[0].UpdatedPods != 0 {
		t.Errorf("where the profile is not part of the set nobody serves it; found %+v", found[0])
	}
}
