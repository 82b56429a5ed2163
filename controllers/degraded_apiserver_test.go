// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
)

func TestAStatusTellsWhatAProfileIsWorthAsLongAsItIsValid(t *testing.T) {
	start(t)
	p := hashing(namespace(t, nil), "orders", "sha3-512")
	create(t, p)
	expectWorth := func(strength int32, fips, weakest string, operations int) {
		t.Helper()
		eventually(t, fmt.Sprintf("the status has the strength %d", strength), func() error {
			if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				return err
			}
			s := p.Status
			if s.ObservedGeneration != p.Generation || (s.Strength == nil) != (strength == 0) || s.Strength != nil && *s.Strength != strength ||
				s.FIPS != fips || s.Weakest != weakest || len(s.Operations) != operations {
				return errNotYet(s)
			}
			return nil
		})
	}
	expectWorth(256, v1alpha1.FIPSApproved, "SHA3-512", 1)
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
	expectWorth(128, v1alpha1.FIPSApproved, "SHA-256", 1)
	update(t, p, func(p *v1alpha1.CryptoProfile) {
		p.Spec.Deprecation = &v1alpha1.Deprecation{ReplacedBy: "orders"} // past the schema, where no webhook is
	})
	expectWorth(0, "", "", 0)
	if p.Status.Digest != "" {
		t.Errorf("a profile that is in no set has the digest %s", p.Status.Digest)
	}
}

func TestBrokersThatLeaveProfilesOutMakeAProfileDegraded(t *testing.T) {
	for sentence, test := range map[string]struct {
		outdated bool
		reason   string
	}{
		"brokers as they are made now":      {false, v1alpha1.ReasonProfilesRefused},
		"brokers as they were made earlier": {true, v1alpha1.ReasonBrokersTooOld},
	} {
		t.Run(sentence, func(t *testing.T) {
			operator := start(t, func(o *controllers.Options) { o.Outdated = func(*corev1.Pod) bool { return test.outdated } })
			labels := map[string]string{"degraded": test.reason}
			ns := namespace(t, labels)
			own, shared := hashing(ns, "orders", "sha3-512"), clusterHashing("degraded", "sha3-512", labels)
			create(t, own)
			create(t, shared)
			expectFile(t, ns, fileOf("degraded", "sha3-512", "orders", "sha3-512"))
			runPod(t, ns, func(p *pod) { p.partial = true })
			expectDegraded(t, own, "True "+test.reason)
			expectDegraded(t, shared, "True "+test.reason)
			want := []v1alpha1.NamespaceStatus{{Name: ns, State: v1alpha1.ReasonRefusedByBroker, Digest: own.Status.Digest, Pods: 1, UpdatedPods: 1}}
			if found := shared.Status.PerNamespace; len(found) != 1 || found[0] != want[0] {
				t.Errorf("found %+v, expected %+v", found, want)
			}
			const metric = "crypto_broker_operator_profile_conditions Degraded "
			if n := numbers(t, operator.metrics, ns)[metric+"CryptoProfile "+test.reason+" True"]; n != 1 {
				t.Errorf("the metric counts %v degraded CryptoProfiles of the namespace, expected 1", n)
			}
			if n := numbers(t, operator.metrics, "")[metric+"ClusterCryptoProfile "+test.reason+" True"]; n != 1 {
				t.Errorf("the metric counts %v degraded ClusterCryptoProfiles, expected 1", n)
			}
		})
	}
}

// expectDegraded waits for a status and reason of the condition Degraded.
func expectDegraded(t *testing.T, object client.Object, want string) {
	t.Helper()
	eventually(t, "the condition Degraded is "+want, func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		status := &v1alpha1.ProfileStatus{}
		switch o := object.(type) {
		case *v1alpha1.CryptoProfile:
			status = &o.Status
		case *v1alpha1.ClusterCryptoProfile:
			status = &o.Status.ProfileStatus
		}
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded)
		if c == nil || string(c.Status)+" "+c.Reason != want {
			return errNotYet(status)
		}
		return nil
	})
}
