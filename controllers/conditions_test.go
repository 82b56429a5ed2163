// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
)

func TestTheConditionPropagated(t *testing.T) {
	tests := map[string]struct {
		summary     distribute.Summary
		notAccepted bool
		noHurry     bool
		status      string
		says        string
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
		"some are being hurried, some not asked yet": {
			summary: distribute.Summary{Pods: 5, Updated: 2, Hurried: 2, Checking: 1},
			status:  "False InProgress", says: "2 of 5 brokers serve it; 3 are being brought up to date.",
		},
		"one is behind, which counts before one that can't be asked": {
			summary: distribute.Summary{Pods: 3, Updated: 1, Behind: 1, Unverified: 1},
			status:  "False Behind", says: "1 of 3 brokers serves it; 1 still serves an older set after 4 tries to hurry the kubelet, to be updated by the kubelet's own resync, which takes up to 90 s.",
		},
		"one is behind where nothing is hurried": {
			summary: distribute.Summary{Pods: 1, Behind: 1}, noHurry: true,
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
			status:  "Unknown Unverified", says: `3 of 4 brokers serve it; 1 could not be asked. To let the operator ask, add a NetworkPolicy that allows ingress to TCP port 9470 of these pods, or to that of their annotation cryptobroker.io/metrics-port, from namespace "operators"; pods on the host's network have no such port and stay unverified.`,
		},
		"a profile that is not accepted": {
			summary: distribute.Summary{Pods: 4, Updated: 4}, notAccepted: true,
			status: "False NotAccepted", says: "see the condition Accepted",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			c := propagator{"operators", 9470, !test.noHurry, newAssessments()}.propagated(test.summary, !test.notAccepted)
			if found := string(c.Status) + " " + c.Reason; found != test.status || !strings.Contains(c.Message, test.says) {
				t.Errorf("found %s: %s", found, c.Message)
			}
		})
	}
}

func TestNumbersThatMoveAreHeldBackUnlessSomebodyMayWait(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	begin := time.Now()
	at := begin.Add

	p := newPace()
	steps := []struct {
		sentence                 string
		differs, urgent, settled bool
		after, wait              time.Duration
	}{
		{"numbers that move wait", true, false, false, 0, holdBackMoving},
		{"a second later they wait a second less", true, false, false, time.Second, holdBackMoving - time.Second},
		{"settled numbers wait less", true, false, true, time.Second, holdBack - time.Second},
		{"then they are written", true, false, true, holdBack, 0},
		{"what is written waits for nothing", false, false, true, holdBack, 0},
		{"other numbers wait anew", true, false, true, 3 * time.Second, holdBack},
		{"news doesn't wait", true, true, false, 4 * time.Second, 0},
		{"the numbers that follow wait while they move", true, false, false, 5 * time.Second, holdBack},
		{"until they have settled", true, false, true, 6 * time.Second, 0},
		{"after which numbers wait", true, false, false, 7 * time.Second, holdBackMoving},
	}
	for _, step := range steps {
		if wait := p.wait(name, step.differs, step.urgent, step.settled, at(step.after)); wait != step.wait {
			t.Errorf("%s: waits %s, expected %s", step.sentence, wait, step.wait)
		}
	}
	p.retain("shop", func(string) bool { return false })
	if len(p.objects) != 0 {
		t.Errorf("%d objects are remembered", len(p.objects))
	}
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	text := strings.Repeat("ä", 600)
	for most := 1015; most < 1025; most++ {
		found := cut(text, most)
		if len(found) > most || len(found) < most-2 || !utf8.ValidString(found) || !strings.HasSuffix(found, " …") {
			t.Errorf("cut to %d bytes it has %d and ends with %q", most, len(found), found[len(found)-8:])
		}
	}
	if found := cut(text, 1200); found != text {
		t.Error("a text that fits was cut")
	}
}
