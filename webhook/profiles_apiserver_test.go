// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The schema lets these patterns through; the broker's compiler does not.
func TestTheAPIServerTellsWhichFieldOfAProfileIsWrong(t *testing.T) {
	startOperator(t)
	profile := fixture.ProfileNamed("bad", func(p *v1alpha1.CryptoProfile) {
		p.Namespace, p.CreationTimestamp = newNamespace(t, nil, nil), metav1.Time{}
		p.Spec.API.SignCertificate = &v1alpha1.SignCertificate{
			SignAlg: "ecdsa", HashAlg: "sha-512",
			Validity: v1alpha1.Validity{ValidNotBeforeOffset: "-1h", ValidNotAfterOffset: "8760h"},
			KeyConstraints: v1alpha1.CertificateKeyConstraints{
				Subject: v1alpha1.KeyAlgorithms{ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 256, MaxKeySize: 521}},
				Issuer:  v1alpha1.KeyAlgorithms{ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 384, MaxKeySize: 521}},
			},
			SubjectAltNames: &v1alpha1.SubjectAltNames{Rule: "patterns", IP: []string{"10.0.0.0/8", "10.0.0.0/99"}, DNS: []string{"a..b"}},
		}
	})
	err := admin.Create(t.Context(), profile)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("answered %v, expected Invalid", err)
	}
	for _, want := range []string{
		`admission webhook "cryptoprofile.validate.cryptobroker.io" denied the request`,
		"spec.api.signCertificate.subjectAltNames.ip[1]",
		"spec.api.signCertificate.subjectAltNames.dns[0]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message does not say %q: %v", want, err)
		}
	}

	profile.Spec.API.SignCertificate.SubjectAltNames = nil
	profile.Finalizers = []string{"example.com/finalizer"}
	if err := admin.Create(t.Context(), profile); err != nil {
		t.Fatalf("a good profile is refused: %v", err)
	}
	if err := admin.Delete(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	if err := admin.Patch(t.Context(), profile, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Errorf("the finalizer of a profile that is being deleted can't be removed: %v", err)
	}
}

func TestTheAPIServerWarnsOfAProfileThatWillNotCount(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t, nil, nil)
	here := func(p *v1alpha1.CryptoProfile) {
		p.Namespace, p.CreationTimestamp, p.Spec.ProfileName = namespace, metav1.Time{}, "Same"
	}
	if err := admin.Create(t.Context(), fixture.ProfileNamed("first", here)); err != nil {
		t.Fatal(err)
	}
	warned, warnings := listening(t)
	const want = `the profile is valid and will not be served: The profile name "Same" belongs to CryptoProfile "first", which is older.`
	eventually(t, "there is a warning", func() error {
		// The operator's cache may not have the first one yet.
		if err := warned.Create(t.Context(), fixture.ProfileNamed("second", here), client.DryRunAll); err != nil {
			return err
		}
		if found := warnings.all(); !slices.Contains(found, want) {
			return fmt.Errorf("warned %q, expected %q", found, want)
		}
		return nil
	})
}

func TestTheAPIServerWarnsOfADeletionThatTakesAProfileFromPods(t *testing.T) {
	startOperator(t)
	profile := fixture.ProfileNamed("orders", func(p *v1alpha1.CryptoProfile) {
		p.Namespace, p.CreationTimestamp = newNamespace(t, nil, nil), metav1.Time{}
	})
	if err := admin.Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	profile.Status.ProfileName, profile.Status.Pods = "orders", 3
	profile.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid, LastTransitionTime: metav1.Now(),
	}}
	if err := admin.Status().Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	warned, warnings := listening(t)
	if err := warned.Delete(t.Context(), profile, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	want := `3 running pods have brokers that serve the profile "orders" in namespace "` + profile.Namespace + `": calls with it fail once it is deleted`
	if found := strings.Join(warnings.all(), "\n"); !strings.Contains(found, want) {
		t.Errorf("warned %q, expected %q", found, want)
	}
}

func TestTheAPIServerWarnsOfAChangeThatBreaksCalls(t *testing.T) {
	startOperator(t)
	profile := fixture.ProfileNamed("orders", func(p *v1alpha1.CryptoProfile) {
		p.Namespace, p.CreationTimestamp = newNamespace(t, nil, nil), metav1.Time{}
		p.Spec = v1alpha1.ProfileSpec{API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha-256"}}}
	})
	if err := admin.Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	profile.Status.ProfileName, profile.Status.Pods = "orders", 3
	profile.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid, LastTransitionTime: metav1.Now(),
	}}
	if err := admin.Status().Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	warned, warnings := listening(t)
	profile.Spec.API.HashData.HashAlg = "sha-512"
	if err := warned.Update(t.Context(), profile, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	want := `3 running pods have brokers that serve the profile "orders", and calls may break: HashData: sha-512 instead of sha-256; kubectl crypto-broker what-if -f FILE -n ` + profile.Namespace + ` shows who makes such calls`
	if found := warnings.all(); !slices.Equal(found, []string{want}) {
		t.Errorf("warned %q, expected %q", found, want)
	}
}

// listening is an administrator who hears warnings.
func listening(t *testing.T) (client.Client, *warnings) {
	t.Helper()
	warnings := &warnings{}
	config := rest.CopyConfig(access)
	config.WarningHandlerWithContext = warnings
	warned, err := client.New(config, client.Options{Scheme: apiServerScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return warned, warnings
}

// warnings collects the warnings of the API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
