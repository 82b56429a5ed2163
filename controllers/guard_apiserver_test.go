// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
)

// There is no webhook here, so each change arrives without a check at admission.

// digestOf returns the digest that a message names.
var digestOf = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// expectWithheld waits until the condition DowngradeWithheld has this status and
// its message has all of these, and returns the message.
func expectWithheld(t *testing.T, object client.Object, status metav1.ConditionStatus, says ...string) (message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the condition DowngradeWithheld is %s and says %q", status, says), func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		var conditions []metav1.Condition
		switch o := object.(type) {
		case *v1alpha1.CryptoProfile:
			conditions = o.Status.Conditions
		case *v1alpha1.ClusterCryptoProfile:
			conditions = o.Status.Conditions
		}
		c := meta.FindStatusCondition(conditions, v1alpha1.ConditionDowngradeWithheld)
		if c == nil || c.Status != status || c.ObservedGeneration != object.GetGeneration() {
			return errNotYet(conditions)
		}
		for _, text := range says {
			if !strings.Contains(c.Message, text) {
				return errNotYet(c)
			}
		}
		message = c.Message
		return nil
	})
	return message
}

// allow follows the instructions of the message.
func allow[T client.Object](t *testing.T, object T, message string) {
	t.Helper()
	digest := digestOf.FindString(message)
	if digest == "" || !strings.Contains(message, "--overwrite "+v1alpha1.AllowWeakerAnnotation+"="+digest) {
		t.Fatalf("no command that allows it: %s", message)
	}
	update(t, object, func(o T) { o.SetAnnotations(map[string]string{v1alpha1.AllowWeakerAnnotation: digest}) })
}

const shaIsWeaker = `spec.api.hashData.hashAlg: "sha-256" has a strength of 128 bits, "sha3-512" had 256 bits.`

func TestAWeakerProfileIsWithheldUntilItIsAllowedAndThenOnce(t *testing.T) {
	operator := start(t)
	expectCounted := func(ns string, withheld, weakened float64) {
		t.Helper()
		found := numbers(t, operator.metrics, ns)
		if found["crypto_broker_operator_profiles_withheld"] != withheld || found["crypto_broker_operator_profiles_weakened_total"] != weakened {
			t.Errorf("the metrics are %v, expected %v withheld and %v weakened", found, withheld, weakened)
		}
	}
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	weaken := func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" }

	update(t, p, weaken)
	message := expectWithheld(t, p, metav1.ConditionTrue, `weaker than the one that was served, which is still served`, shaIsWeaker, "--namespace "+ns)
	expectStatus(t, p, has{accepted: "False DowngradeWithheld", propagated: "False NotAccepted"})
	if p.Status.Digest != "" {
		t.Errorf("a version that is not served has the digest %s", p.Status.Digest)
	}
	expectEvent(t, p, corev1.EventTypeWarning, "DowngradeWithheld", shaIsWeaker)
	expectCounted(ns, 1, 0)
	other := hashing(ns, "payments", "sha-384")
	create(t, other) // other changes are served
	expectFile(t, ns, fileOf("orders", "sha3-512", "payments", "sha-384"))

	allow(t, p, message)
	expectFile(t, ns, fileOf("orders", "sha-256", "payments", "sha-384"))
	expectWithheld(t, p, metav1.ConditionFalse)
	expectStatus(t, p, has{accepted: "True Valid"})
	expectEvent(t, p, corev1.EventTypeWarning, "ProfileWeakened", shaIsWeaker)
	expectCounted(ns, 0, 1)

	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha3-512" })
	expectFile(t, ns, fileOf("orders", "sha3-512", "payments", "sha-384"))
	update(t, p, weaken) // the annotation is still there
	expectWithheld(t, p, metav1.ConditionTrue, shaIsWeaker)
	expectFile(t, ns, fileOf("orders", "sha3-512", "payments", "sha-384"))
}

func TestWhatAdmissionCannotSeeIsWithheld(t *testing.T) {
	strong := fileOf("orders", "sha3-512")
	tests := map[string]struct {
		// removed reports whether the strong profile was taken out of service before.
		removed bool
		weaken  func(t *testing.T, ns string, labels map[string]string) client.Object
	}{
		"a label that is taken off a namespace": {weaken: func(t *testing.T, ns string, labels map[string]string) client.Object {
			weak := hashing(ns, "orders", "sha-256")
			create(t, weak)
			expectStatus(t, weak, has{accepted: "False Conflict"})
			update(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, func(n *corev1.Namespace) { n.Labels["guard"] = "none" })
			return weak
		}},
		"a ClusterCryptoProfile that is deleted": {weaken: func(t *testing.T, ns string, labels map[string]string) client.Object {
			weak := hashing(ns, "orders", "sha-256")
			create(t, weak)
			expectStatus(t, weak, has{accepted: "False Conflict"})
			if err := apiServer.Delete(t.Context(), &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders-" + ns}}); err != nil {
				t.Fatal(err)
			}
			return weak
		}},
		// A running operator may see the time between, and then the profile is no longer served.
		"a ClusterCryptoProfile made again while no operator ran": {weaken: func(t *testing.T, ns string, labels map[string]string) client.Object {
			stop(t)
			if err := apiServer.Delete(t.Context(), &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders-" + ns}}); err != nil {
				t.Fatal(err)
			}
			weak := clusterHashing("orders-"+ns, "sha-256", labels)
			weak.Spec.ProfileName = "orders"
			create(t, weak)
			start(t)
			return weak
		}},
		"one that comes minutes after the ConfigMap's file went": {removed: true, weaken: func(t *testing.T, ns string, labels map[string]string) client.Object {
			if err := apiServer.Delete(t.Context(), &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders-" + ns}}); err != nil {
				t.Fatal(err)
			}
			expectNoFile(t, ns)
			weak := hashing(ns, "copy", "sha-256")
			weak.Spec.ProfileName = "orders"
			create(t, weak)
			return weak
		}},
		"one that comes after another operator began": {removed: true, weaken: func(t *testing.T, ns string, labels map[string]string) client.Object {
			if err := apiServer.Delete(t.Context(), &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders-" + ns}}); err != nil {
				t.Fatal(err)
			}
			expectNoFile(t, ns)
			stop(t)
			weak := hashing(ns, "orders", "sha-256")
			create(t, weak)
			start(t)
			return weak
		}},
		"a change while no operator ran": {weaken: func(t *testing.T, ns string, _ map[string]string) client.Object {
			stop(t)
			weak := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders-" + ns}}
			update(t, weak, func(p *v1alpha1.ClusterCryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
			start(t)
			return weak
		}},
		"a change after somebody deleted the ConfigMap": {weaken: func(t *testing.T, ns string, _ map[string]string) client.Object {
			if err := apiServer.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}}); err != nil {
				t.Fatal(err)
			}
			weak := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders-" + ns}}
			update(t, weak, func(p *v1alpha1.ClusterCryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
			return weak
		}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			running = start(t)
			labels := map[string]string{"guard": regexp.MustCompile(`\W`).ReplaceAllString(sentence, "-")}
			ns := namespace(t, labels)
			policy := clusterHashing("orders-"+ns, "sha3-512", labels)
			policy.Spec.ProfileName = "orders"
			create(t, policy)
			expectFile(t, ns, strong)

			weak := test.weaken(t, ns, labels)
			says := "weaker than the one that was served, which is still served"
			if test.removed {
				says = "weaker than the one that was served before it was removed, and is not served"
			}
			message := expectWithheld(t, weak, metav1.ConditionTrue, says, shaIsWeaker)
			if test.removed {
				expectNoFile(t, ns)
			} else {
				expectFile(t, ns, strong)
			}
			switch weak := weak.(type) {
			case *v1alpha1.CryptoProfile:
				allow(t, weak, message)
			case *v1alpha1.ClusterCryptoProfile:
				allow(t, weak, message)
			}
			expectFile(t, ns, fileOf("orders", "sha-256"))
			expectWithheld(t, weak, metav1.ConditionFalse)
		})
	}
}

// running is the operator of the test at hand.
var running operator

// stop ends the operator, so that another one may start.
func stop(t *testing.T) {
	t.Helper()
	running.stop()
}

func TestAProfileBelowTheMinimumStrengthIsLeftOut(t *testing.T) {
	start(t, func(o *controllers.Options) { o.MinimumStrength = 192 })
	ns := namespace(t, nil)
	weak, strong := hashing(ns, "weak", "sha-256"), hashing(ns, "strong", "sha-384")
	create(t, weak)
	create(t, strong)
	expectFile(t, ns, fileOf("strong", "sha-384"))
	expectStatus(t, weak, has{accepted: "False BelowMinimumStrength", says: "has a strength of 128 bits by SHA-256, and profiles of this cluster must have at least 192"})
	update(t, strong, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "shake-128" })
	expectStatus(t, strong, has{accepted: "False BelowMinimumStrength", says: "What was served before is still served."})
	expectFile(t, ns, fileOf("strong", "sha-384"))
}
