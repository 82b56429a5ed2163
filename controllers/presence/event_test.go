// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

func TestWhereANewPodWouldBeRefusedTheEventSaysWhy(t *testing.T) {
	const refusal = `A new pod like that is refused: metadata.annotations[cryptobroker.io/inject]: found "yes", expected "true" to get a broker or "false" to get none. `
	const template = "Correct the annotation in its pod template: until then a restart makes no pods."
	tests := map[string]struct {
		pods  []string // the values with which they ask
		kind  string
		event string
	}{
		"of a Deployment": {
			[]string{"yes", "yes", "false"}, "Deployment",
			"Warning BrokerMissing 2 of 3 pods are without a broker and should have one. " + refusal + template,
		},
		"of a Deployment with a pod of an older template": {
			[]string{"true", "yes"}, "Deployment",
			"Warning BrokerMissing 2 of 2 pods are without a broker and should have one. " + refusal + template,
		},
		"of a pod alone": {
			[]string{"yes"}, "Pod",
			"Warning BrokerMissing The pod is without a broker and should have one. " + refusal + "Correct the annotation and create it again.",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if found := eventAbout(t, test.kind, test.pods...); found != test.event {
				t.Errorf("told  %s\nwants %s", found, test.event)
			}
		})
	}
}

func TestAnEventFitsWhateverAPodAsksWith(t *testing.T) {
	found := eventAbout(t, "Deployment", strings.Repeat("\U0001F512", 10000))
	note, _ := strings.CutPrefix(found, "Warning BrokerMissing ")
	if len(note) > 1024 || !strings.HasSuffix(note, "until then a restart makes no pods.") {
		t.Errorf("told %d bytes: %s", len(note), note)
	}
}

// eventAbout returns the event on an owner of this kind whose pods ask for brokers with these values but have none.
func eventAbout(t *testing.T, kind string, asks ...string) string {
	t.Helper()
	recorder := events.NewFakeRecorder(2)
	r := &reconciler{options: testOptions(), recorder: recorder, tally: newTally()}
	for i, value := range asks {
		pod := podOf("orders", fmt.Sprint(i), annotated(contract.InjectAnnotation, value))
		r.tally.put(pod, r.options.judge(pod))
	}
	f, _ := r.tally.of("shop", "orders", time.Now())
	r.event(corev1.ObjectReference{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: "orders"}, &f)
	if len(recorder.Events) != 1 {
		t.Fatalf("told %d events, expected one", len(recorder.Events))
	}
	return <-recorder.Events
}
