// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

func TestTheConditionPropagated(t *testing.T) {
	tests := map[string]struct {
		summary      distribute.Summary
		notAccepted  bool
		notAnnotated bool
		rolling      string
		rollout      *v1alpha1.RolloutStatus
		status       string
		says         string
	}{
		"no broker runs": {
			status: "True NoPods", says: "No pod with a broker is running.",
		},
		"all serve it": {
			summary: distribute.Summary{Pods: 5, Updated: 5},
			status:  "True AllUpdated", says: "5 of 5 brokers serve it.",
		},
		"the only one serves it": {
			summary: distribute.Summary{Pods: 1, Updated: 1},
			status:  "True AllUpdated", says: "1 of 1 broker serves it.",
		},
		"some are being updated, some not asked yet": {
			summary: distribute.Summary{Pods: 5, Updated: 2, Updating: 2, Checking: 1},
			status:  "False InProgress", says: "2 of 5 brokers serve it; 3 are being brought up to date.",
		},
		"one is behind, which counts before one that can't be asked": {
			summary: distribute.Summary{Pods: 3, Updated: 1, Behind: 1, Unverified: 1},
			status:  "False Behind", says: "1 of 3 brokers serves it; 1 still serves an older set after 4 annotations that make the kubelet sync at once, to be updated by the kubelet's own resync, which takes up to 90 s.",
		},
		"one is behind where pods are not annotated": {
			summary: distribute.Summary{Pods: 1, Behind: 1}, notAnnotated: true,
			status: "False Behind", says: "since pods are not annotated",
		},
		"one refused the set": {
			summary: distribute.Summary{Pods: 2, Updated: 1, Refusing: 1},
			status:  "False RefusedByBroker", says: "1 refused the set and keeps an older one: the broker's log says why.",
		},
		"one left profiles out": {
			summary: distribute.Summary{Pods: 2, Updated: 2, Partial: 1},
			status:  "False RefusedByBroker", says: "2 of 2 brokers serve it, 1 of these without some of its profiles",
		},
		"one has no set at all": {
			summary: distribute.Summary{Pods: 2, Updated: 1, Waiting: 1},
			status:  "False Behind", says: "1 has not read any set yet.",
		},
		"some can't be asked": {
			summary: distribute.Summary{Pods: 4, Updated: 3, Unverified: 1},
			status:  "Unknown Unverified", says: `3 of 4 brokers serve it; 1 could not be asked. To let the operator ask, add a NetworkPolicy that allows ingress to TCP port 9470 of these pods, or to the port in their annotation cryptobroker.io/metrics-port, from namespace "operators"; pods on the host's network have no such port and stay unverified.`,
		},
		"a profile that is not accepted": {
			summary: distribute.Summary{Pods: 4, Updated: 4}, notAccepted: true,
			status: "False NotAccepted", says: "see the condition Accepted",
		},
		"a change whose rollout has yet to begin": {
			summary: distribute.Summary{Pods: 4, Updated: 4}, rolling: "sha256:2",
			status: "False RolloutProgressing", says: "has not reached all brokers",
		},
		"a change whose rollout waits": {
			summary: distribute.Summary{Pods: 4, Updated: 3, Unverified: 1}, rolling: "sha256:2",
			rollout: &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutPaused, Digest: "sha256:2", Message: "Somebody has to promote it."},
			status:  "False RolloutPaused", says: "Somebody has to promote it.",
		},
		"a change whose set is on the way": {
			summary: distribute.Summary{Pods: 4, Updated: 3, Updating: 1}, rolling: "sha256:2",
			rollout: &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutProgressing, Digest: "sha256:2"},
			status:  "False InProgress", says: "being brought up to date",
		},
		"a change after the rollout of another one": {
			summary: distribute.Summary{Pods: 4, Updated: 4}, rolling: "sha256:2",
			rollout: &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutComplete, Digest: "sha256:1"},
			status:  "False RolloutProgressing", says: "has not reached all brokers",
		},
		"a change that was taken back": {
			summary: distribute.Summary{Pods: 4, Updated: 4},
			rollout: &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutFailed, Digest: "sha256:2"},
			status:  "True AllUpdated", says: "4 of 4 brokers serve it.",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			c := conditions{"operators", 9470, !test.notAnnotated, newAssessments()}.propagated(test.summary, render.Verdict{Accepted: !test.notAccepted, Rolling: test.rolling}, test.rollout)
			if found := string(c.Status) + " " + c.Reason; found != test.status || !strings.Contains(c.Message, test.says) {
				t.Errorf("found %s: %s", found, c.Message)
			}
		})
	}
}
