// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

func reached(is bool, failure string) providerreport.Endpoint {
	return providerreport.Endpoint{Reached: &is, Failure: failure, Version: "KMIP 1.4", Latency: 2 * time.Millisecond, Connections: 1}
}

func open(endpoints ...providerreport.Endpoint) *providerreport.Provider {
	return &providerreport.Provider{Generation: 3, SecretVersion: "7", Endpoints: endpoints}
}

func closed(problem, detail string) *providerreport.Provider {
	return &providerreport.Provider{Generation: 3, Problem: problem, Detail: detail}
}

func provider() *v1alpha1.KeyProvider {
	return &v1alpha1.KeyProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hsm", Generation: 3, UID: "1"},
		Spec: v1alpha1.KeyProviderSpec{
			Type: "kmip", Endpoints: []v1alpha1.KeyEndpoint{"a:1", "b:1"},
			Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "kmip-client"}},
		},
	}
}

func TestTheStatusSaysWhatAllGatewaysSay(t *testing.T) {
	up, down, denied, fresh := reached(true, ""), reached(false, "TimedOut"), reached(true, "CredentialsRefused"), providerreport.Endpoint{}
	for sentence, test := range map[string]struct {
		views []*providerreport.Provider
		// states are the states of the two endpoints, and conditions are Ready, Accepted and Reachable.
		states     [2]string
		conditions [3]string
		says       string
	}{
		"no gateway": {
			nil, [2]string{"Unknown", "Unknown"}, [3]string{"Unknown NoGateway", "Unknown NoGateway", "Unknown NotAccepted"},
			"kubectl get pods -n operators -l app.kubernetes.io/component=key-gateway",
		},
		"all is well": {
			[]*providerreport.Provider{open(up, up), open(up, up)}, [2]string{"Reachable", "Reachable"},
			[3]string{"True AllReachable", "True Opened", "True AllReachable"}, "All key gateways reach",
		},
		"one server is away": {
			[]*providerreport.Provider{open(up, down), open(up, down)}, [2]string{"Reachable", "Unreachable"},
			[3]string{"True SomeUnreachable", "True Opened", "True SomeUnreachable"}, "b:1: it takes too long",
		},
		"one gateway does not reach one server": {
			[]*providerreport.Provider{open(up, up), open(up, down)}, [2]string{"Reachable", "PartlyReachable"},
			[3]string{"True SomeUnreachable", "True Opened", "True SomeUnreachable"}, "b:1",
		},
		"one gateway reaches nothing": {
			[]*providerreport.Provider{open(up, up), open(down, down)}, [2]string{"PartlyReachable", "PartlyReachable"},
			[3]string{"False Unreachable", "True Opened", "False Unreachable"}, "a:1: it takes too long",
		},
		"all servers refuse the credentials": {
			[]*providerreport.Provider{open(denied, denied)}, [2]string{"Reachable", "Reachable"},
			[3]string{"False CredentialsRefused", "True Opened", "False CredentialsRefused"}, "it refuses the credentials",
		},
		"nothing was contacted": {
			[]*providerreport.Provider{open(fresh, fresh)}, [2]string{"Unknown", "Unknown"},
			[3]string{"Unknown NotContacted", "True Opened", "Unknown NotContacted"}, "No server was contacted",
		},
		"a gateway that has just started does not count beside another": {
			[]*providerreport.Provider{open(up, up), open(fresh, fresh)}, [2]string{"Reachable", "Reachable"},
			[3]string{"True AllReachable", "True Opened", "True AllReachable"}, "All key gateways",
		},
		"there is no Secret": {
			[]*providerreport.Provider{closed(providerreport.SecretNotFound, "")}, [2]string{"Unknown", "Unknown"},
			[3]string{"False SecretNotFound", "False SecretNotFound", "Unknown NotAccepted"}, `the Secret "kmip-client" in namespace "shop"`,
		},
		"the Secret may not be read": {
			[]*providerreport.Provider{open(up, up), closed(providerreport.SecretForbidden, "")}, [2]string{"Reachable", "Reachable"},
			[3]string{"False SecretForbidden", "False SecretForbidden", "Unknown NotAccepted"}, "the verbs get and watch",
		},
		"the API server did not answer a gateway": {
			[]*providerreport.Provider{closed(providerreport.SecretUnreadable, "")}, [2]string{"Unknown", "Unknown"},
			[3]string{"False SecretUnreadable", "False SecretUnreadable", "Unknown NotAccepted"}, "It tries again.",
		},
		"what a person has to end goes first": {
			[]*providerreport.Provider{closed(providerreport.SecretUnreadable, ""), closed(providerreport.InvalidCredentials, "tls.crt is wrong")}, [2]string{"Unknown", "Unknown"},
			[3]string{"False InvalidCredentials", "False InvalidCredentials", "Unknown NotAccepted"}, "tls.crt is wrong.",
		},
		"no provider can be made of it": {
			[]*providerreport.Provider{closed(providerreport.Invalid, "Type is pkcs11")}, [2]string{"Unknown", "Unknown"},
			[3]string{"False Invalid", "False Invalid", "Unknown NotAccepted"}, "cannot open the provider: Type is pkcs11.",
		},
		"a gateway does not know it": {
			[]*providerreport.Provider{open(up, up), nil}, [2]string{"Reachable", "Reachable"},
			[3]string{"Unknown NotOpened", "Unknown NotOpened", "Unknown NotAccepted"}, "has not opened generation 3",
		},
		"a gateway has an older generation": {
			[]*providerreport.Provider{{Generation: 2, Endpoints: []providerreport.Endpoint{up, up}}}, [2]string{"Unknown", "Unknown"},
			[3]string{"Unknown NotOpened", "Unknown NotOpened", "Unknown NotAccepted"}, "has not opened generation 3",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			status, p := &v1alpha1.KeyProviderStatus{}, provider()
			fill(status, p, &p.Spec, test.views, "operators")
			if found := [2]string{status.Endpoints[0].State, status.Endpoints[1].State}; found != test.states || status.Endpoints[0].Address != "a:1" {
				t.Errorf("the states of the endpoints are %q, expected %q", found, test.states)
			}
			var found [3]string
			for i, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAccepted, v1alpha1.ConditionReachable} {
				c := meta.FindStatusCondition(status.Conditions, name)
				found[i] = string(c.Status) + " " + c.Reason
			}
			if message := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message; found != test.conditions || !strings.Contains(message, test.says) {
				t.Errorf("the conditions are %q with %q, expected %q with %q", found, message, test.conditions, test.says)
			}
		})
	}
}

func TestNumbersOfAllGatewaysAreMerged(t *testing.T) {
	status, p := &v1alpha1.KeyProviderStatus{}, provider()
	slow := reached(true, "")
	slow.Latency, slow.Connections, slow.Paused = 50*time.Millisecond, 3, true
	views := []*providerreport.Provider{open(reached(true, ""), reached(true, "")), open(slow, reached(true, ""))}
	fill(status, p, &p.Spec, views, "operators")
	want := v1alpha1.KeyEndpointStatus{Address: "a:1", State: "Reachable", ReachedBy: 2, PausedBy: 1, Version: "KMIP 1.4", Latency: "50ms", Connections: 4}
	if status.Endpoints[0] != want || status.Reachable != "2/2" || status.Latency != "50ms" || status.Gateways != 2 || status.SecretVersion != "7" || status.ObservedGeneration != 3 {
		t.Errorf("found %+v", status)
	}

	// A slightly different latency is not a change. A new Secret is not a change either until all gateways have read it.
	before := status.DeepCopy()
	views[1].Endpoints[0].Latency, views[1].SecretVersion = 20*time.Millisecond, "8"
	fill(status, p, &p.Spec, views, "operators")
	if status.Latency != "50ms" || status.SecretVersion != "7" {
		t.Errorf("the latency is %s and the version of the Secret %s, expected both as before", status.Latency, status.SecretVersion)
	}
	views[1].Endpoints[0].Latency, views[0].SecretVersion = 5*time.Millisecond, "8"
	fill(status, p, &p.Spec, views, "operators")
	if status.Latency != "5ms" || status.SecretVersion != "8" {
		t.Errorf("the latency is %s and the version of the Secret %s, expected 5ms and 8", status.Latency, status.SecretVersion)
	}
	if before.SecretVersion = "8"; !slices.EqualFunc(withoutNumbers(status).Endpoints, withoutNumbers(before).Endpoints, func(a, b v1alpha1.KeyEndpointStatus) bool { return a == b }) {
		t.Error("a latency counts as more than a number")
	}
}

func TestAGatewayHasAWhileToOpenAProvider(t *testing.T) {
	now := time.Now()
	late, ready := closed(providerreport.Opening, ""), open()
	k := &remembered{}
	for _, step := range []struct {
		says  string
		views []*providerreport.Provider
		// silence is the time without any answer, and the time since the start.
		silence, after time.Duration
		generation     int64
		waits          time.Duration
	}{
		{"nobody has answered yet", nil, 10 * time.Second, 0, 3, 20 * time.Second},
		{"nobody answers any more", nil, patience, 0, 3, 0},
		{"a gateway reads the Secret", []*providerreport.Provider{ready, late}, 0, 0, 3, patience},
		{"it takes long", []*providerreport.Provider{ready, late}, 0, 20 * time.Second, 3, 10 * time.Second},
		{"it takes too long", []*providerreport.Provider{ready, late}, 0, 30 * time.Second, 3, 0},
		{"a change comes", []*providerreport.Provider{ready, late}, 0, 30 * time.Second, 4, patience},
		{"all have it", []*providerreport.Provider{ready, ready}, 0, 31 * time.Second, 3, 0},
	} {
		if found := k.wait(step.generation, step.views, step.silence, now.Add(step.after)); found != step.waits {
			t.Errorf("%s: waits %s, expected %s", step.says, found, step.waits)
		}
	}
}
