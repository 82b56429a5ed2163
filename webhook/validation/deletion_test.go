// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestTheDeletionOfAProfileThatPodsUseIsWarnedOf(t *testing.T) {
	with := func(reason string, pods, updated, unverified int32) v1alpha1.ProfileStatus {
		accepted := metav1.ConditionFalse
		if reason == v1alpha1.ReasonValid {
			accepted = metav1.ConditionTrue
		}
		return v1alpha1.ProfileStatus{ProfileName: "Default", Pods: pods, UpdatedPods: updated, UnverifiedPods: unverified,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: accepted, Reason: reason}}}
	}
	const fails = ": calls with it fail once it is deleted, unless another object defines a profile of this name"
	own := func(status v1alpha1.ProfileStatus, changes ...func(*v1alpha1.CryptoProfile)) client.Object {
		return fixture.ProfileNamed("default", append(changes, func(p *v1alpha1.CryptoProfile) { p.Status = status })...)
	}
	cluster := func(status v1alpha1.ProfileStatus) client.Object {
		return fixture.ClusterProfileNamed("default", func(p *v1alpha1.ClusterCryptoProfile) { p.Status.ProfileStatus = status })
	}
	for sentence, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"one pod serves it":           {own(with(v1alpha1.ReasonValid, 1, 1, 0)), `1 running pod has a broker that serves the profile "Default" in namespace "shop"` + fails},
		"pods serve it, or soon will": {own(with(v1alpha1.ReasonValid, 12, 3, 1)), `12 running pods have brokers that serve the profile "Default" in namespace "shop"` + fails},
		"pods of the cluster do":      {cluster(with(v1alpha1.ReasonValid, 12, 3, 1)), `12 running pods have brokers that serve the profile "Default"` + fails},
		"pods of some of its namespaces do, and others have a profile of its name": {
			cluster(with(v1alpha1.ReasonConflict, 12, 3, 1)), `4 running pods have brokers that serve the profile "Default"` + fails},
		"pods serve what it was before it was made weaker": {
			own(with(v1alpha1.ReasonDowngradeWithheld, 2, 0, 0)), `2 running pods have brokers that serve the profile "Default" in namespace "shop"` + fails},
		"there are no pods":            {own(with(v1alpha1.ReasonValid, 0, 0, 0)), ""},
		"another profile has its name": {own(with(v1alpha1.ReasonConflict, 12, 0, 0)), ""},
		"nothing is known of it":       {fixture.ProfileNamed("default"), ""},
		"it is being deleted, and was warned": {own(with(v1alpha1.ReasonValid, 1, 1, 0), func(p *v1alpha1.CryptoProfile) {
			p.DeletionTimestamp, p.Finalizers = &fixture.DayOne, []string{"example.com/x"}
		}), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			// The webhook reads nothing else of the cluster.
			namespaced, cluster := validatorsWith(t, nil)
			handler := namespaced
			if test.object.GetNamespace() == "" {
				handler = cluster
			}
			response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Delete, Namespace: test.object.GetNamespace(), Name: test.object.GetName(),
				OldObject: runtime.RawExtension{Raw: fixture.JSON(t, test.object)},
			}})
			if found := strings.Join(response.Warnings, "\n"); !response.Allowed || found != test.want {
				t.Errorf("allowed %t, warned %q\nexpected %q", response.Allowed, found, test.want)
			}
		})
	}
}
