// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
)

// operatorWebhook returns a webhook that selects all namespaces except the named ones, like the webhook of the chart.
func operatorWebhook(but ...string) *admissionregistrationv1.MutatingWebhookConfiguration {
	const name = "annotated.inject.cryptobroker.io"
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: name, NamespaceSelector: butFor(but...)}},
	}
}

func butFor(names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: names}}}
}

// namespaceNamed has the label that each namespace has.
func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
}

// lacks makes a fake cluster refuse to list a resource, because the user lacks the right.
func lacks(client *fake.Clientset, resource string) {
	client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(`User "jane" cannot list resource "`+resource+`" in API group "" at the cluster scope`))
	})
}

func TestWhichPodsMissABrokerDependsOnWhichNamespacesAreLeftOut(t *testing.T) {
	policy := func(kind string, selector *metav1.LabelSelector) runtime.Object {
		return &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "policy"},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind},
				MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: selector},
			},
		}
	}
	const right = "it is not known which namespaces are left out, so a restart may give some of the listed pods no broker: the right to list "
	tests := map[string]struct {
		installed runtime.Object
		lacks     string
		missing   string
		doubt     string
		notes     string
	}{
		"a webhook that leaves some out":      {operatorWebhook("kube-system", "operator", "legacy"), "", "shop", "", ""},
		"a webhook for all":                   {operatorWebhook("kube-system"), "", "legacy operator shop", "", ""},
		"a policy that leaves some out":       {policy("InjectionTemplate", butFor("kube-system", "operator")), "", "legacy shop", "", ""},
		"nothing that is installed":           {namespaceNamed("elsewhere"), "", "legacy operator shop", "", ""},
		"a policy of another":                 {policy("ConfigMap", butFor("shop")), "", "legacy operator shop", "", ""},
		"webhooks that may not be read":       {operatorWebhook("operator"), "mutatingwebhookconfigurations", "legacy operator shop", right + "mutatingwebhookconfigurations is missing (user jane)", ""},
		"policies that may not be read":       {operatorWebhook("operator"), "mutatingadmissionpolicies", "legacy operator shop", right + "mutatingadmissionpolicies is missing (user jane)", ""},
		"policies that nobody has to ask for": {operatorWebhook("kube-system"), "mutatingadmissionpolicies", "legacy operator shop", "", ""},
		"namespaces that may not be read":     {operatorWebhook("operator"), "namespaces", "legacy operator shop", "", "it is not known which namespaces ask for brokers by label or are left out, so the list may lack pods or have too many: the right to list namespaces is missing (user jane)"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			objects := []runtime.Object{test.installed}
			for _, name := range []string{"kube-system", "legacy", "operator", "shop"} {
				objects = append(objects, namespaceNamed(name),
					&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "app", Annotations: map[string]string{contract.InjectAnnotation: "true"}}})
			}
			client := fake.NewClientset(objects...)
			if test.lacks != "" {
				lacks(client, test.lacks)
			}
			rows, notes, err := brokers.Survey{Client: client, All: true}.Rows(t.Context(), "", "")
			if err != nil || len(rows) != 4 {
				t.Fatalf("found %+v, %v", rows, err)
			}
			var missing []string
			for _, r := range rows {
				switch {
				case r.Broker == brokers.Missing:
					missing = append(missing, r.Namespace)
				case r.Broker != brokers.None || r.Note != coverage.ExcludedNamespace:
					t.Errorf("found %+v", r)
				}
			}
			if strings.Join(missing, " ") != test.missing || brokers.Doubt(rows) != test.doubt || strings.Join(notes, "\n") != test.notes {
				t.Errorf("found %q, %q, %q", missing, brokers.Doubt(rows), notes)
			}
		})
	}
}

func TestANewPodThatGetsABrokerShowsThatItsNamespaceIsNotLeftOut(t *testing.T) {
	asks := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "asks", Annotations: map[string]string{contract.InjectAnnotation: "true"}}}
	for judge, want := range map[bool]bool{false: true, true: false} {
		client := fake.NewClientset(namespaceNamed("shop"), asks, brokerstest.InjectedPod("shop", "broker:1"))
		lacks(client, "mutatingwebhookconfigurations")
		brokerstest.OnlyIn(client, "shop")
		rows, notes, err := brokers.Survey{Client: client, Judge: judge}.Rows(t.Context(), "shop", "")
		if err != nil || len(notes) > 0 || len(rows) != 2 || brokers.Doubt(rows) != "" != want {
			t.Errorf("judged %t: found %q, %+v, %q, %v", judge, brokers.Doubt(rows), rows, notes, err)
		}
	}
}

func TestABrokerIsOutdatedOnlyWhereANewPodWouldGetOne(t *testing.T) {
	client := fake.NewClientset(operatorWebhook("operator"), namespaceNamed("operator"), namespaceNamed("shop"), brokerstest.InjectedPod("operator", "broker:1"), brokerstest.InjectedPod("shop", "broker:1"))
	asked := brokerstest.OnlyIn(client, "shop")
	rows, notes, err := brokers.Survey{Client: client, Judge: true}.Rows(t.Context(), "", "")
	if err != nil || len(notes) > 0 || len(rows) != 2 || rows[0].Broker != brokers.Present || rows[0].Note != coverage.ExcludedNamespace || rows[1].Broker != brokers.Outdated || *asked != 1 {
		t.Errorf("found %+v, %q, %v after %d dry runs", rows, notes, err, *asked)
	}
}

func TestWhereNothingInjectsItIsSaidThatAgeIsNotKnown(t *testing.T) {
	client := fake.NewClientset(brokerstest.InjectedPod("shop", "broker:1"))
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	rows, notes, err := brokers.Survey{Client: client, Judge: true}.Rows(t.Context(), "", "")
	want := []string{"it is not known which brokers are outdated: " + brokers.ErrNotInjected.Error()}
	if err != nil || len(rows) != 1 || rows[0].Broker != brokers.Present || !slices.Equal(notes, want) {
		t.Errorf("found %+v, %q, %v", rows, notes, err)
	}
}
