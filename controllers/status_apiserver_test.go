// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// has is the expected content of a status. An empty text expects nothing.
type has struct {
	accepted, propagated      string // "<status> <reason>"
	says                      string // part of the message of a condition
	pods, updated, unverified int32
	namespaces                int32
}

// expectStatus waits until the status is about the current generation and has the expected content.
func expectStatus(t *testing.T, object client.Object, want has) {
	t.Helper()
	eventually(t, fmt.Sprintf("the status has %+v", want), func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		var status v1alpha1.ProfileStatus
		var namespaces int32
		switch o := object.(type) {
		case *v1alpha1.CryptoProfile:
			status = o.Status
		case *v1alpha1.ClusterCryptoProfile:
			status, namespaces = o.Status.ProfileStatus, o.Status.Namespaces
		}
		says := false
		for _, condition := range status.Conditions {
			says = says || strings.Contains(condition.Message, want.says)
		}
		numbers := [4]int32{status.Pods, status.UpdatedPods, status.UnverifiedPods, namespaces}
		if status.ObservedGeneration != object.GetGeneration() ||
			!isCondition(status, v1alpha1.ConditionAccepted, want.accepted) || !isCondition(status, v1alpha1.ConditionPropagated, want.propagated) ||
			numbers != [4]int32{want.pods, want.updated, want.unverified, want.namespaces} || !says {
			return errNotYet(status)
		}
		return nil
	})
}

func isCondition(status v1alpha1.ProfileStatus, kind, want string) bool {
	condition := meta.FindStatusCondition(status.Conditions, kind)
	return want == "" || condition != nil && string(condition.Status)+" "+condition.Reason == want && condition.ObservedGeneration == status.ObservedGeneration
}

func errNotYet(found any) error {
	text, err := yaml.Marshal(found)
	if err != nil {
		return err
	}
	return fmt.Errorf("found\n%s", text)
}

func TestAProfileThatIsBeingDeletedIsNotAccepted(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	c := clusterHashing("kept-"+ns, "sha3-512", map[string]string{corev1.LabelMetadataName: ns})
	for namespaces, object := range []client.Object{p, c} {
		object.SetFinalizers([]string{"example.com/kept"})
		create(t, object)
		expectStatus(t, object, has{accepted: "True Valid", namespaces: int32(namespaces)})
		if err := apiServer.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		expectStatus(t, object, has{accepted: "False Deleting", propagated: "False NotAccepted", says: "The profile is being deleted."})
		object.SetFinalizers(nil)
		if err := apiServer.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProfileWithoutPodsIsAcceptedAndPropagated(t *testing.T) {
	start(t)
	p := hashing(namespace(t, nil), "orders", "sha3-512")
	p.Spec.ProfileName = "Orders 2026"
	create(t, p)
	expectStatus(t, p, has{accepted: "True Valid", propagated: "True NoPods"})
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("CryptoProfile"))
	if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(p), raw); err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{"pods", "updatedPods", "unverifiedPods"} {
		if found, is, err := unstructured.NestedInt64(raw.Object, "status", number); found != 0 || !is || err != nil {
			t.Errorf("%s is %d (there: %t, %v), expected a written 0", number, found, is, err)
		}
	}
	if p.Status.ProfileName != "Orders 2026" || !strings.HasPrefix(p.Status.Digest, "sha256:") {
		t.Errorf("found %+v", p.Status)
	}
}

func TestAnInvalidProfileSaysWhatIsWrongAndHoldsUpNoOther(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	good, bad := hashing(ns, "good", "sha3-512"), hashing(ns, "bad", "sha3-512")
	bad.Spec.Deprecation = &v1alpha1.Deprecation{ReplacedBy: "bad"} // past the schema, where no webhook is
	create(t, bad)
	create(t, good)
	expectStatus(t, bad, has{accepted: "False Invalid", propagated: "False NotAccepted", says: "spec.deprecation.replacedBy"})
	expectStatus(t, good, has{accepted: "True Valid", propagated: "True NoPods"})
	expectFile(t, ns, fileOf("good", "sha3-512"))
	expectEvent(t, bad, "Warning", "Invalid", "spec.deprecation.replacedBy")
	update(t, bad, func(p *v1alpha1.CryptoProfile) { p.Spec.Deprecation = nil })
	expectStatus(t, bad, has{accepted: "True Valid", propagated: "True NoPods"})
	expectEvent(t, bad, "Normal", "Accepted", "part of the namespace's set")
}

func TestTheClusterProfileCountsBeforeTheNamespaces(t *testing.T) {
	start(t)
	ns := namespace(t, map[string]string{"tier": "conflict"})
	own := hashing(ns, "shared", "sha-512")
	create(t, own)
	expectStatus(t, own, has{accepted: "True Valid"})
	shared := clusterHashing("shared", "sha3-512", map[string]string{"tier": "conflict"})
	create(t, shared)
	expectStatus(t, own, has{accepted: "False Conflict", says: `belongs to ClusterCryptoProfile "shared"`})
	expectStatus(t, shared, has{accepted: "True Valid", namespaces: 1})
	expectFile(t, ns, fileOf("shared", "sha3-512"))
	if err := apiServer.Delete(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, own, has{accepted: "True Valid"})
	expectFile(t, ns, fileOf("shared", "sha-512"))
}

func TestAClusterProfileThatSelectsNothingIsAcceptedAllTheSame(t *testing.T) {
	start(t)
	p := clusterHashing("nowhere", "sha3-512", map[string]string{"tier": "none"})
	create(t, p)
	expectStatus(t, p, has{accepted: "True NoNamespaces", propagated: "True NoPods"})
}

func TestASelectorThatCannotBeReadIsInvalid(t *testing.T) {
	start(t)
	p := clusterHashing("unreadable", "sha3-512", nil)
	p.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Sometimes"}}
	create(t, p)
	expectStatus(t, p, has{accepted: "False Invalid", propagated: "False NotAccepted", says: "spec.namespaceSelector.matchExpressions[0].operator"})
}

func TestAProfileThatDoesNotFitIsLeftOut(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	first := hashing(ns, "first", "sha3-512")
	create(t, first)
	expectFile(t, ns, fileOf("first", "sha3-512"))
	large := hashing(ns, "large", "sha3-512")
	large.Spec.KMS = &v1alpha1.KMS{Client: "test", Config: map[string]apiextensionsv1.JSON{"text": {Raw: []byte(`"` + strings.Repeat("x", render.MaxSetSize) + `"`)}}}
	create(t, large)
	expectStatus(t, large, has{accepted: "False TooLarge", says: "this one is left out"})
	expectStatus(t, first, has{accepted: "True Valid"})
	policy := clusterHashing("policy", "sha-384", map[string]string{corev1.LabelMetadataName: ns})
	create(t, policy)
	expectFile(t, ns, fileOf("first", "sha3-512", "policy", "sha-384"))
}

func TestASetThatCannotBeWrittenIsNotAccepted(t *testing.T) {
	start(t)
	ns := namespace(t, map[string]string{"writing": "refused"})
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-writing"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"writing": "refused"}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no ConfigMaps here"}},
		},
	}
	create(t, policy)
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-writing"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	create(t, binding)
	t.Cleanup(func() {
		if err := apiServer.Delete(context.Background(), policy); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the policy is in force", func() error {
		err := apiServer.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "probe-"}}, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "no ConfigMaps here") {
			return fmt.Errorf("found: %w", err)
		}
		return nil
	})
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectStatus(t, p, has{accepted: "False NotWritten", propagated: "False NotAccepted", says: "no ConfigMaps here"})
	if err := apiServer.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, p, has{accepted: "True Valid"})
}

func TestAChangeOfOneProfileIsWrittenAndToldOfThatOneAlone(t *testing.T) {
	const others = 200
	ns := namespace(t, map[string]string{"tier": "many"})
	policy := clusterHashing("many", "sha-384", map[string]string{"tier": "many"})
	create(t, policy)
	changed := hashing(ns, "changed", "sha-512")
	create(t, changed)
	var made errgroup.Group
	made.SetLimit(16)
	for i := range others {
		made.Go(func() error {
			return apiServer.Create(t.Context(), hashing(ns, fmt.Sprintf("other-%d", i), "sha3-512"))
		})
	}
	if err := made.Wait(); err != nil {
		t.Fatal(err)
	}
	o := start(t)
	eventually(t, "there is a set", func() error { _, err := file(t, ns); return err })
	runPod(t, ns)
	late := runPod(t, ns, ignoring(2)) // to the first questions
	pods := int32(2)
	served := func() error {
		var all v1alpha1.CryptoProfileList
		if err := apiServer.List(t.Context(), &all, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, p := range all.Items {
			if p.Status.UpdatedPods != pods || !isCondition(p.Status, v1alpha1.ConditionPropagated, "True AllUpdated") {
				return fmt.Errorf("%s: %w", p.Name, errNotYet(p.Status))
			}
		}
		return nil
	}
	eventually(t, "all profiles are served", served)
	expectStatus(t, policy, has{propagated: "True AllUpdated", pods: 2, updated: 2, namespaces: 1})

	for _, change := range []struct {
		sentence, algorithm string
		ignored, writes     int
		begins              bool
	}{
		{"brokers take it at once", "sha3-512", 0, 2, false},
		{"a broker takes it later than numbers are held back", "sha-512", 2, 3, false},
		{"a pod begins meanwhile, which changes the numbers of all", "sha3-512", 0, 3, true},
	} {
		ctx, stop := context.WithCancel(t.Context())
		counted := count(ctx, t, ns)
		late.mu.Lock()
		late.ignoring = len(late.values) + change.ignored
		late.mu.Unlock()
		if change.begins {
			runPod(t, ns)
			pods++
			eventually(t, "the pod that begins is counted", func() error {
				if found := numbers(t, o.metrics, ns)["crypto_broker_operator_pods updated"]; found != float64(pods) {
					return fmt.Errorf("found %g brokers, expected %d", found, pods)
				}
				return nil
			})
		}
		update(t, changed, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = change.algorithm })
		expectStatus(t, changed, has{accepted: "True Valid", propagated: "True AllUpdated", pods: pods, updated: pods})
		eventually(t, "what is held back would be written", func() error {
			if condition := meta.FindStatusCondition(changed.Status.Conditions, v1alpha1.ConditionPropagated); time.Since(condition.LastTransitionTime.Time) < 5*time.Second {
				return errors.New("not yet")
			}
			return nil
		})
		stop()
		for name, n := range counted() {
			most := map[string]int{"changed": 1 + change.writes, "event on changed": 1}[name]
			switch {
			case change.begins && name == policy.Name:
				most = 2 // the only one of its kind; its number changes
			case change.begins && strings.HasPrefix(name, "other-"):
				most = 1
			}
			if n > most {
				t.Errorf("%s: %s: %d writes, expected %d at most, the change among them", change.sentence, name, n, most)
			}
		}
	}
	eventually(t, "all profiles have the number of pods", served)
}

// count returns how often each profile of a namespace, and the ClusterCryptoProfiles,
// were written since, by name, and how many events there are about each.
func count(ctx context.Context, t *testing.T, ns string) func() map[string]int {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	var watches sync.WaitGroup
	for _, list := range []client.ObjectList{&v1alpha1.CryptoProfileList{}, &v1alpha1.ClusterCryptoProfileList{}, &eventsv1.EventList{}} {
		options := []client.ListOption{}
		if _, cluster := list.(*v1alpha1.ClusterCryptoProfileList); !cluster {
			options = append(options, client.InNamespace(ns))
		}
		if err := apiServer.List(ctx, list, options...); err != nil {
			t.Fatal(err)
		}
		options = append(options, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		events, err := apiServer.Watch(ctx, list, options...)
		if err != nil {
			t.Fatal(err)
		}
		watches.Go(func() {
			for event := range events.ResultChan() {
				mu.Lock()
				switch object := event.Object.(type) {
				case *eventsv1.Event:
					counts["event on "+object.Regarding.Name]++
				case client.Object:
					counts[object.GetName()]++
				}
				mu.Unlock()
			}
		})
	}
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(counts)
	}
}
