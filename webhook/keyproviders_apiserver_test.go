// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestTheAPIServerWarnsOfKeysWhoseProviderIsNotThere(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t, nil, nil)
	spec := v1alpha1.KeyProviderSpec{
		Type: "kmip", Endpoints: []v1alpha1.KeyEndpoint{"kmip.example.com"},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "kmip-client"}},
	}
	profile := fixture.ProfileNamed("orders", func(p *v1alpha1.CryptoProfile) {
		p.Namespace, p.CreationTimestamp = namespace, metav1.Time{}
		p.Spec = v1alpha1.ProfileSpec{API: v1alpha1.Operations{SignData: &v1alpha1.SignData{SignAlg: "ed25519", KeyIDs: []v1alpha1.KeyID{{ID: "hsm/orders"}}}}}
	})
	const absent = `keys of the provider "hsm" cannot be used: found no KeyProvider "hsm" in the namespace and no ClusterKeyProvider that selects it`
	expectWarning(t, profile, absent, true)

	own := &v1alpha1.KeyProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hsm"}, Spec: spec}
	if err := admin.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	expectWarning(t, profile, absent, false)

	all := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: "hsm"}, Spec: v1alpha1.ClusterKeyProviderSpec{
		KeyProviderSpec:   spec,
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
	}}
	// The operator's cache may not have the namespace yet.
	eventually(t, "a cluster provider warns of the one that it replaces", func() error {
		warned, warnings := listening(t)
		if err := warned.Create(t.Context(), all.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		if found, want := strings.Join(warnings.all(), "\n"), fmt.Sprintf("KeyProvider %q of namespace %q will not be used: a ClusterKeyProvider counts before it", "hsm", namespace); found != want {
			return fmt.Errorf("warned %q, expected %q", found, want)
		}
		return nil
	})

	all.Spec.NamespaceSelector.MatchLabels["-"] = "a"
	if err := admin.Create(t.Context(), all); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.namespaceSelector") {
		t.Errorf("a selector that cannot be read is answered with %v", err)
	}
}

// expectWarning creates an object as a dry run, and checks whether the API server warns.
func expectWarning(t *testing.T, object client.Object, sentence string, expected bool) {
	t.Helper()
	warned, warnings := listening(t)
	if err := warned.Create(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if found := strings.Join(warnings.all(), "\n"); strings.Contains(found, sentence) != expected {
		t.Errorf("warned %q; that this is part of it: %q, expected %t", found, sentence, expected)
	}
}
