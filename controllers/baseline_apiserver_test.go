// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// The policies of the chart protect the ConfigMaps from other users. These tests are about a time in which the chart, and so the
// operator, is not installed.

const notKnown = "what this namespace served before is not known"

// recorded waits until the operator's record has the last set of the namespace.
func recorded(t *testing.T, namespace string) {
	t.Helper()
	ns := &corev1.Namespace{}
	if err := apiServer.Get(t.Context(), types.NamespacedName{Name: namespace}, ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the record has the namespace's revision", func() error {
		set, record := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		err := errors.Join(
			apiServer.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, set),
			apiServer.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: v1alpha1.RecordConfigMapPrefix + string(ns.UID[:1])}, record))
		if err != nil {
			return err
		}
		statement, _, err := signed.Read([]byte(set.Annotations[v1alpha1.MemorySignatureAnnotation]))
		if err == nil && !strings.Contains(strings.ReplaceAll(record.Data["namespaces"], "\n", " \n"), fmt.Sprint(ns.UID, " ", statement.Revision, " ")) {
			err = fmt.Errorf("the record has %q, the set %d", record.Data, statement.Revision)
		}
		return err
	})
}

func TestWhileNoOperatorRunsNobodyMakesABaseline(t *testing.T) {
	strong, weak := fileOf("orders", "sha3-512"), fileOf("orders", "sha-256")
	yesterday := map[string]*corev1.ConfigMap{}
	for sentence, test := range map[string]struct {
		tamper func(t *testing.T, set *corev1.ConfigMap)
		says   string
	}{
		"a weaker set without a signature": {func(t *testing.T, set *corev1.ConfigMap) {
			update(t, set, func(c *corev1.ConfigMap) { c.Data = map[string]string{profile.FileName: weak} })
		}, "its set is not signed by the operator"},
		"a weaker set under the signature of the other": {func(t *testing.T, set *corev1.ConfigMap) {
			update(t, set, func(c *corev1.ConfigMap) { c.Data[profile.FileName] = weak })
		}, "its set is not signed by the operator"},
		"a set of before that was signed": {func(t *testing.T, set *corev1.ConfigMap) {
			old := yesterday[set.Namespace]
			update(t, set, func(c *corev1.ConfigMap) { c.Data, c.Annotations = old.Data, old.Annotations })
		}, "it is older than what the namespace was given last"},
		"a ConfigMap that is deleted": {func(t *testing.T, set *corev1.ConfigMap) {
			if err := apiServer.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}, "it is missing, although the namespace had one"},
		"a ConfigMap without set and annotations": {func(t *testing.T, set *corev1.ConfigMap) {
			update(t, set, func(c *corev1.ConfigMap) { c.Data, c.Annotations = nil, nil })
		}, "its set is missing, and its text about removed profiles is not signed"},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := start(t)
			ns := namespace(t, nil)
			p := hashing(ns, "orders", "sha-256")
			create(t, p)
			expectFile(t, ns, weak)
			yesterday[ns] = setIn(t, ns).DeepCopy()
			update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha3-512" })
			expectFile(t, ns, strong)
			broker := runPod(t, ns, trusting(trustIn(t, o, ns)))
			expectServed(t, strong, broker)
			recorded(t, ns)
			o.stop()

			update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
			set := setIn(t, ns)
			test.tamper(t, set)

			o = start(t)
			message := expectWithheld(t, p, metav1.ConditionTrue, "may be weaker than one that was served before, and is not served", notKnown)
			expectStatus(t, p, has{accepted: "False DowngradeWithheld"})
			expectEvent(t, set, corev1.EventTypeWarning, "BaselineMissing", test.says)
			expectNoFile(t, ns)
			if found := numbers(t, o.metrics, ns); found["crypto_broker_operator_baselines_missing"] != 1 || found["crypto_broker_operator_profiles_withheld"] != 1 {
				t.Errorf("the metrics are %v", found)
			}
			expectServed(t, strong, broker) // the running broker keeps what it has

			o.stop()
			o = start(t) // a new operator, which finds the objects of the previous one
			other := hashing(ns, "payments", "sha-384")
			create(t, other)
			expectWithheld(t, other, metav1.ConditionTrue, notKnown)
			allow(t, p, message)
			expectStatus(t, p, has{accepted: "False NotWritten", says: "until all profiles of the namespace are allowed"})
			expectNoFile(t, ns)
			allow(t, other, expectWithheld(t, other, metav1.ConditionTrue, notKnown))
			expectFile(t, ns, fileOf("orders", "sha-256", "payments", "sha-384"))
			expectServed(t, fileOf("orders", "sha-256", "payments", "sha-384"), broker)
			if found := numbers(t, o.metrics, ns); found["crypto_broker_operator_baselines_missing"] != 0 {
				t.Errorf("the metrics are %v", found)
			}
		})
	}
}

func TestWhatIsRememberedOfRemovedProfilesIsSignedToo(t *testing.T) {
	for sentence, tamper := range map[string]func(set, before *corev1.ConfigMap){
		"taken out": func(set, _ *corev1.ConfigMap) { set.Annotations = nil },
		"of before": func(set, before *corev1.ConfigMap) {
			for _, key := range []string{v1alpha1.RemovedProfilesAnnotation, v1alpha1.ProfilesHistoryAnnotation, v1alpha1.MemorySignatureAnnotation} {
				if delete(set.Annotations, key); before.Annotations[key] != "" {
					set.Annotations[key] = before.Annotations[key]
				}
			}
		},
		"of before, with the set of before": func(set, before *corev1.ConfigMap) {
			set.Data, set.Annotations = maps.Clone(before.Data), maps.Clone(before.Annotations)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := start(t)
			ns := namespace(t, nil)
			create(t, hashing(ns, "payments", "sha-384"))
			expectFile(t, ns, fileOf("payments", "sha-384"))
			before := setIn(t, ns).DeepCopy()
			removed := hashing(ns, "orders", "sha3-512")
			create(t, removed)
			expectFile(t, ns, fileOf("orders", "sha3-512", "payments", "sha-384"))
			if err := apiServer.Delete(t.Context(), removed); err != nil {
				t.Fatal(err)
			}
			expectFile(t, ns, fileOf("payments", "sha-384")) // the same as in the beginning
			recorded(t, ns)
			o.stop()

			update(t, setIn(t, ns), func(c *corev1.ConfigMap) { tamper(c, before) })
			weak := hashing(ns, "orders", "sha-256")
			create(t, weak)
			start(t)
			expectWithheld(t, weak, metav1.ConditionTrue, notKnown)
		})
	}
}

func TestWhatIsTamperedWithIsPutRightWhereTheProfilesStayed(t *testing.T) {
	o := start(t)
	strong := fileOf("orders", "sha3-512")
	tampered := map[string]func(set *corev1.ConfigMap) error{
		"changed": func(set *corev1.ConfigMap) error {
			set.Data[profile.FileName] = fileOf("orders", "sha-256")
			return apiServer.Update(t.Context(), set)
		},
		"deleted": func(set *corev1.ConfigMap) error { return apiServer.Delete(t.Context(), set) },
	}
	namespaces := map[string]string{}
	for sentence := range tampered {
		ns := namespace(t, nil)
		namespaces[sentence] = ns
		create(t, hashing(ns, "orders", "sha3-512"))
		expectFile(t, ns, strong)
		recorded(t, ns)
	}
	o.stop()
	for sentence, ns := range namespaces {
		if err := tampered[sentence](setIn(t, ns)); err != nil {
			t.Fatal(err)
		}
	}
	o = start(t)
	for sentence, ns := range namespaces {
		t.Run(sentence, func(t *testing.T) {
			expectFile(t, ns, strong)
			expectSigned(t, trustIn(t, o, ns), ns)
			expectEvent(t, setIn(t, ns), corev1.EventTypeWarning, "BaselineMissing", "Its set is known")
			p := hashing(ns, "payments", "sha3-512")
			create(t, p) // the profile may have been served and removed before
			allow(t, p, expectWithheld(t, p, metav1.ConditionTrue, notKnown))
			expectFile(t, ns, fileOf("orders", "sha3-512", "payments", "sha3-512"))
		})
	}
}

func TestANamespaceThatWasNeverServedIsFreeWithAnyOperator(t *testing.T) {
	o := start(t)
	ns := namespace(t, nil)
	first := namespace(t, nil)
	create(t, hashing(first, "orders", "sha3-512"))
	recorded(t, first)
	o.stop()
	p := hashing(ns, "orders", "sha-256")
	create(t, p)
	start(t)
	expectFile(t, ns, fileOf("orders", "sha-256"))
	expectStatus(t, p, has{accepted: "True Valid"})
}

// removeRecord deletes the record, except for the copy in the format of earlier versions.
func removeRecord(t *testing.T) {
	t.Helper()
	for _, digit := range "0123456789abcdef" {
		page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: v1alpha1.RecordConfigMapPrefix + string(digit)}}
		if err := apiServer.Delete(t.Context(), page); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestTheRecordOfAnEarlierVersionCountsAfterTheUpgrade(t *testing.T) {
	o := start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	recorded(t, ns)
	o.stop() // at its end it also writes the copy for earlier versions
	removeRecord(t)
	update(t, setIn(t, ns), func(c *corev1.ConfigMap) { c.Data[profile.FileName] = fileOf("orders", "sha-256") })
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
	start(t)
	expectWithheld(t, p, metav1.ConditionTrue, notKnown)
	expectNoFile(t, ns)
}

// An operator before this version signs no memory and keeps no record.
func TestWhatAnOlderOperatorLeftIsTakenForWhatItServed(t *testing.T) {
	o := start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	before := expectSigned(t, trustIn(t, o, ns), ns)
	recorded(t, ns)
	o.stop()
	removeRecord(t)
	if err := apiServer.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: v1alpha1.ProfilesConfigMap}}); err != nil {
		t.Fatal(err)
	}
	update(t, setIn(t, ns), func(c *corev1.ConfigMap) { delete(c.Annotations, v1alpha1.MemorySignatureAnnotation) })
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })

	o = start(t)
	expectWithheld(t, p, metav1.ConditionTrue, "weaker than the one that was served, which is still served", shaIsWeaker)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	recorded(t, ns)
	if after := expectSigned(t, trustIn(t, o, ns), ns); after != before {
		t.Errorf("the set has the statement %+v, expected the one before, for nothing of it changed: %+v", after, before)
	}
}
