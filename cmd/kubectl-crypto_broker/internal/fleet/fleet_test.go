// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// profile returns an object with conditions, each as "Type=Status/Reason".
func profileWith(name string, conditions ...string) object {
	p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, text := range conditions {
		kind, rest, _ := strings.Cut(text, "=")
		status, reason, _ := strings.Cut(rest, "/")
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "about " + reason})
	}
	return namespacedObject(p)
}

func TestAProfileHasTheStateThatItsConditionsSay(t *testing.T) {
	rolling := func(phase string) func(*object) {
		return func(o *object) { o.status.Rollout = &v1alpha1.RolloutStatus{Phase: phase, Message: "about it"} }
	}
	tests := map[string]struct {
		conditions []string
		change     func(*object)
		state      string
		tone       Tone
	}{
		"the operator has not looked":      {nil, nil, "Pending", Warn},
		"the operator is behind":           {[]string{"Accepted=True/Valid", "Propagated=True/AllUpdated"}, func(o *object) { o.generation = 2 }, "Pending", Warn},
		"invalid":                          {[]string{"Accepted=False/Invalid", "Propagated=False/NotAccepted", "Degraded=True/NotAccepted"}, nil, "Not accepted: Invalid", Bad},
		"withheld":                         {[]string{"Accepted=False/DowngradeWithheld"}, nil, "Not accepted: DowngradeWithheld", Bad},
		"degraded":                         {[]string{"Accepted=True/Valid", "Propagated=False/RefusedByBroker", "Degraded=True/SetRefused"}, nil, "Degraded: SetRefused", Bad},
		"on its way":                       {[]string{"Accepted=True/Valid", "Propagated=False/InProgress"}, nil, "Propagating", Busy},
		"behind":                           {[]string{"Accepted=True/Valid", "Propagated=False/Behind"}, nil, "Not propagated: Behind", Warn},
		"not verified":                     {[]string{"Accepted=True/Valid", "Propagated=Unknown/Unverified"}, nil, "Not propagated: Unverified", Warn},
		"without pods":                     {[]string{"Accepted=True/Valid", "Propagated=True/NoPods"}, nil, "No pods", Good},
		"served":                           {[]string{"Accepted=True/Valid", "Propagated=True/AllUpdated", "Degraded=False/AsExpected"}, nil, "Served", Good},
		"rolled out":                       {[]string{"Accepted=True/Valid", "Propagated=False/Paused"}, rolling(v1alpha1.RolloutPaused), "Rolling out", Busy},
		"rolled out in vain":               {[]string{"Accepted=True/Valid", "Propagated=False/Failed"}, rolling(v1alpha1.RolloutFailed), "Rollout failed", Bad},
		"rolled out before":                {[]string{"Accepted=True/Valid", "Propagated=True/AllUpdated"}, rolling(v1alpha1.RolloutComplete), "Served", Good},
		"accepted, and nothing else known": {[]string{"Accepted=True/Valid"}, nil, "Pending", Warn},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			o := profileWith("payments", test.conditions...)
			if test.change != nil {
				test.change(&o)
			}
			if state, tone, _ := o.state(); state != test.state || tone != test.tone {
				t.Errorf("found %q, %s; expected %q, %s", state, tone, test.state, test.tone)
			}
		})
	}
}

func TestTheWorstProfilesComeFirst(t *testing.T) {
	served, accepted := "Propagated=True/AllUpdated", "Accepted=True/Valid"
	all := profilesOf([]object{
		profileWith("a", accepted, served), profileWith("b", accepted, "Propagated=False/InProgress"), profileWith("c"), profileWith("d", "Accepted=False/Invalid"),
	}, []brokers.Row{{Namespace: "shop", Pod: "x", Broker: brokers.Present, Workload: "deployment/orders"}})
	var found []string
	for _, p := range all {
		found = append(found, fmt.Sprint(p.Object, " ", p.State, " ", len(p.Serving.Rows)))
	}
	want := "cprof/d Not accepted: Invalid 0, cprof/c Pending 0, cprof/b Propagating 1, cprof/a Served 1"
	if text := strings.Join(found, ", "); text != want {
		t.Errorf("found %s, expected %s", text, want)
	}
}

func TestPodsOfAWorkloadWithTheSameProblemAreOneRow(t *testing.T) {
	rows := []brokers.Row{
		{Namespace: "shop", Pod: "fine", Broker: brokers.Present, Set: brokers.SetUpdated, Workload: "deployment/fine"},
		{Namespace: "shop", Pod: "old-1", Broker: brokers.Outdated, Workload: "deployment/old"},
		{Namespace: "shop", Pod: "late-1", Broker: brokers.Present, Set: brokers.SetBehind, Workload: "deployment/old"},
		{Namespace: "shop", Pod: "old-2", Broker: brokers.Outdated, Workload: "deployment/old"},
		{Namespace: "bank", Pod: "alone", Broker: brokers.Missing},
		{Namespace: "bank", Pod: "cut", Broker: brokers.Outdated, Set: brokers.SetRefused, Workload: "job/x", Note: "why"},
	}
	all := problemsOf(rows, " --context=test")
	var found []string
	for _, p := range all {
		found = append(found, fmt.Sprintf("%s %s: %s %d %s %s", p.Namespace, p.Workload, p.Problem, p.Pods, p.Example, p.Command))
	}
	want := []string{
		"bank pod/alone: Broker missing 1 alone kubectl crypto-broker explain alone -n bank --context=test",
		"bank job/x: Set refused 1 cut kubectl crypto-broker explain cut -n bank --context=test",
		"shop deployment/old: Broker outdated 2 old-1 kubectl crypto-broker explain old-1 -n shop --context=test",
		"shop deployment/old: Behind 1 late-1 kubectl crypto-broker explain late-1 -n shop --context=test",
	}
	if strings.Join(found, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	var counts Counts
	countPods(rows, &counts)
	if want := (Counts{Namespaces: 2, Pods: 5, Missing: 1, Outdated: 3, Troubled: 5}); counts != want {
		t.Errorf("found %+v, expected %+v", counts, want)
	}
}

func TestWhoMayNotPatchAProfileCanAskNothingOfItsRollout(t *testing.T) {
	o := profileWith("payments")
	barred := func(r Rollout) string {
		var all []string
		for _, c := range r.Choices {
			all = append(all, string(c.Action)+": "+c.Barred)
		}
		return strings.Join(all, "; ")
	}
	const back = "The rollout went back to the old profile."
	tests := map[string]struct{ phase, right, want string }{
		"who may":            {v1alpha1.RolloutPaused, "", "promote: ; promote-full: ; abort: "},
		"who may not":        {v1alpha1.RolloutPaused, "the right is missing", "promote: The right is missing.; promote-full: The right is missing.; abort: The right is missing."},
		"who may, too late":  {v1alpha1.RolloutReturned, "", "promote: " + back + "; promote-full: ; abort: " + back},
		"who may, afterward": {v1alpha1.RolloutComplete, "", ""},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			o.status.Rollout = &v1alpha1.RolloutStatus{Phase: test.phase}
			all := rolloutsOf([]object{o}, func(downgrade.Source) string { return test.right })
			if len(all.Rows) != 1 || barred(all.Rows[0]) != test.want {
				t.Errorf("found %+v, expected %s", all.Rows, test.want)
			}
		})
	}
	if all := rolloutsOf([]object{profileWith("plain")}, nil); len(all.Rows) != 0 {
		t.Errorf("found %+v", all)
	}
}

func TestAFleetOfTenThousandPodsIsAFewRows(t *testing.T) {
	long := strings.Repeat("why ", 10_000)
	var rows []brokers.Row
	for i := range 10_000 {
		rows = append(rows, brokers.Row{
			Namespace: fmt.Sprint("n", i%500), Pod: fmt.Sprint("pod-", i), Workload: fmt.Sprint("deployment/d", i%2000), Broker: brokers.Missing, Note: long,
		})
	}
	var objects []object
	for i := range 5000 {
		objects = append(objects, profileWith(fmt.Sprint("p", i), "Accepted=False/Invalid"))
		objects[i].status.Conditions[0].Message = long
	}
	state := Fleet{Profiles: first(profilesOf(objects, rows), maxProfiles), Problems: first(problemsOf(rows, ""), maxProblems)}
	if len(state.Profiles.Rows) != maxProfiles || state.Profiles.More != 4800 || len(state.Problems.Rows) != maxProblems || state.Problems.More != 1900 {
		t.Errorf("found %d and %d profiles, %d and %d problems", len(state.Profiles.Rows), state.Profiles.More, len(state.Problems.Rows), state.Problems.More)
	}
	text, err := json.Marshal(state)
	if err != nil || len(text) > 300_000 {
		t.Errorf("the page gets %d bytes, %v", len(text), err)
	}
}

func TestUsesAreSummedUpOverWorkloads(t *testing.T) {
	weak := inventory.Verdict{Strength: 112, PostQuantum: inventory.Vulnerable, CNSA: inventory.OutsideCNSA, FIPS: true}
	strong := inventory.Verdict{Strength: 256, PostQuantum: inventory.Unaffected, CNSA: inventory.CNSA2, FIPS: true}
	uses := []inventory.Use{
		{Namespace: "shop", Workload: "deployment/a", Profile: "old", Operation: "HashData", Algorithm: "sha-512", Verdict: strong, Calls: 1},
		{Namespace: "shop", Workload: "deployment/a", Profile: "old", Operation: "SignData", Algorithm: "rsa", Keys: []inventory.Key{{Algorithm: "RSA", Bits: 2048}}, Verdict: weak, Calls: 2},
		{Namespace: "bank", Workload: "deployment/b", Profile: "old", Operation: "SignData", Algorithm: "rsa", Keys: []inventory.Key{{Algorithm: "RSA", Bits: 2048}}, Verdict: weak, Calls: 1<<64 - 2},
	}
	old := profileWith("old")
	old.spec.Deprecation = &v1alpha1.Deprecation{DeprecatedSince: "2026-01-31", ReplacedBy: "new"}
	old.status.Strength, old.status.FIPS = new(int32(112)), v1alpha1.FIPSPartly
	var p Posture
	p.declared([]object{old, profileWith("unknown")})
	p.deprecated([]object{old, profileWith("fine")}, uses)
	p.used(uses)
	if len(p.Uses.Rows) != 2 || p.Uses.Rows[0].Used != "SignData rsa, RSA 2048" || p.Uses.Rows[0].Workloads != 2 || p.Uses.Rows[0].Calls != 1<<64-1 || p.Uses.Rows[1].Calls != 1 {
		t.Errorf("found %+v", p.Uses)
	}
	if p.PostQuantum[0].Count != 1<<64-1 || p.PostQuantum[1].Count != 0 || p.PostQuantum[2].Count != 1 {
		t.Errorf("found %+v", p.PostQuantum)
	}
	if fmt.Sprint(p.Strength[0].Count, p.Strength[1].Count, p.Strength[2].Count, p.Strength[3].Count) != "0 1 0 0" || p.FIPS[1].Count != 1 {
		t.Errorf("found %+v, %+v", p.Strength, p.FIPS)
	}
	if len(p.Deprecated.Rows) != 1 || strings.Join(p.Deprecated.Rows[0].UsedBy.Rows, ",") != "shop deployment/a" || p.Deprecated.Rows[0].Says != "Deprecated since 2026-01-31, replaced by new" {
		t.Errorf("found %+v", p.Deprecated)
	}
}

func TestACommandForAShellHasOnlyNamesThatTheAPIServerHasChecked(t *testing.T) {
	for owner, want := range map[string]string{
		"orders":                     "kubectl crypto-broker restart statefulset/orders -n shop",
		"orders; curl evil.example":  "kubectl crypto-broker explain orders-0 -n shop",
		"orders$(curl evil.example)": "kubectl crypto-broker explain orders-0 -n shop",
		"orders\nrm":                 "kubectl crypto-broker explain orders-0 -n shop",
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, Controller: new(true)}}}}
		found, err := workload.NewOwners(nil).Of(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		row := brokers.Row{Namespace: "shop", Pod: "orders-0", Broker: brokers.Missing, Owner: found, Workload: found.String()}
		if command := problemsOf([]brokers.Row{row}, "")[0].Command; command != want {
			t.Errorf("found %q, expected %q", command, want)
		}
	}
}

func TestThePageShowsAllNamespacesOnlyToWhoMaySeeThem(t *testing.T) {
	const notice = "This page shows only namespace shop, because the right to %s in all namespaces is missing. To see others, name them by --namespaces."
	for sentence, test := range map[string]struct{ lacks, scope, notice string }{
		"all rights":            {"", "all namespaces", ""},
		"pods of one namespace": {"list pods", "namespace shop", fmt.Sprintf(notice, "list pods")},
		"profiles are not seen": {"watch cryptoprofiles", "namespace shop", fmt.Sprintf(notice, "watch cryptoprofiles")},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				right := review.Spec.ResourceAttributes
				review.Status.Allowed = right.Namespace == "" && right.Verb+" "+right.Resource != test.lacks
				return true, review, nil
			})
			scope, err := AllOr(t.Context(), client, "shop")
			if err != nil || scope.String() != test.scope || scope.Notice != test.notice {
				t.Errorf("found %s, %q, %v", scope, scope.Notice, err)
			}
		})
	}
}
