// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestTheAPIServerRefusesAnAccessPolicyWithFieldAndColumn(t *testing.T) {
	startOperator(t)
	policy := func(when string) *v1alpha1.KeyAccessPolicy {
		return &v1alpha1.KeyAccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "secret"}, Spec: v1alpha1.KeyAccessPolicySpec{
			Allow: []v1alpha1.KeyAccessRule{{Name: "cleared", When: v1alpha1.KeyAccessExpression(when)}},
		}}
	}
	if err := admin.Create(t.Context(), policy("caller.claims.clearance >= 3"), client.DryRunAll); err != nil {
		t.Errorf("found %v for a good policy", err)
	}
	err := admin.Create(t.Context(), policy("caller.bound && nobody"), client.DryRunAll)
	if want := "spec.allow[0].when: Invalid value: line 1, column 17 of the expression: undeclared reference to 'nobody'"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
	peer := &v1alpha1.KeyAccessPeer{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "b"}, Spec: v1alpha1.KeyAccessPeerSpec{URL: "https://b.example", Authorities: "none"}}
	err = admin.Create(t.Context(), peer, client.DryRunAll)
	if want := "spec.authorities: Invalid value: found no certificate, expected PEM"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected %s", err, want)
	}
}
