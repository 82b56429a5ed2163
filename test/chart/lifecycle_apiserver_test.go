// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// The life cycle of a release, with two versions of Helm, each on its own API server: Helm 4 uses server-side apply, and Helm 3
// merges on the client.
func TestTheLifeOfARelease(t *testing.T) {
	for name, flag := range map[string]string{
		"applied by the server":          "--server-side=true",
		"merged by Helm, as Helm 3 does": "--server-side=false",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := startServer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			})
			admin, err := s.as("")
			if err != nil {
				t.Fatal(err)
			}
			helm := func(arguments ...string) {
				t.Helper()
				if _, err := s.runHelm(t.Context(), arguments...); err != nil {
					t.Fatal(err)
				}
			}

			helm("install", release, chartPath, "--create-namespace", flag)
			bundle := []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
			setBundle(t, admin, bundle)

			helm("upgrade", release, chartPath, flag, "--set", "webhook.timeoutSeconds=7,replicas=3")
			checkWebhooks(t, admin, bundle, 7)
			helm("upgrade", release, chartPath, flag, "--reset-values")
			checkWebhooks(t, admin, bundle, 5)
			helm("rollback", release, "2", flag)
			checkWebhooks(t, admin, bundle, 7)

			helm("uninstall", release)
			checkOnlyDefinitionsAreLeft(t, admin)
			// There is no validation now, and the profile stays like all others.
			profile := &v1alpha1.ClusterCryptoProfile{
				ObjectMeta: metav1.ObjectMeta{Name: "default"},
				Spec: v1alpha1.ClusterProfileSpec{ProfileSpec: v1alpha1.ProfileSpec{
					API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha3-512"}},
				}},
			}
			eventually(t, "profiles to need no webhook", func(ctx context.Context) error { return admin.Create(ctx, profile) })

			helm("install", release, chartPath, flag)
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
				t.Errorf("found %v after the second installation, expected the profile to be kept", err)
			}
			helm("uninstall", release)

			_, err = s.runHelm(t.Context(), "install", "another", chartPath, flag)
			if err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
				t.Errorf("found %v, expected Helm to refuse definitions that another release left", err)
			}
			if _, err := s.runHelm(t.Context(), "uninstall", "another", "--ignore-not-found"); err != nil {
				t.Fatal(err)
			}
			helm("install", "another", chartPath, flag, "--take-ownership")
			helm("uninstall", "another")
			helm("install", "without", chartPath, flag, "--set", "crds.install=false")
		})
	}
}

// setBundle does what the operator does once it has a CA.
func setBundle(t *testing.T, admin client.Client, bundle []byte) {
	t.Helper()
	mutating := &admissionv1.MutatingWebhookConfiguration{}
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	for _, object := range []client.Object{mutating, validating} {
		if err := admin.Get(t.Context(), client.ObjectKey{Name: release}, object); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for _, object := range []client.Object{mutating, validating} {
		if err := admin.Update(t.Context(), object, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			t.Fatal(err)
		}
	}
}

// checkWebhooks checks that every webhook has the CA bundle and the timeout.
func checkWebhooks(t *testing.T, admin client.Client, bundle []byte, timeout int32) {
	t.Helper()
	mutating := &admissionv1.MutatingWebhookConfiguration{}
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	for _, object := range []client.Object{mutating, validating} {
		if err := admin.Get(t.Context(), client.ObjectKey{Name: release}, object); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, config admissionv1.WebhookClientConfig, seconds *int32) {
		t.Helper()
		if !bytes.Equal(config.CABundle, bundle) {
			t.Errorf("%s: found the caBundle %q, expected the operator's to be kept", name, config.CABundle)
		}
		if *seconds != timeout {
			t.Errorf("%s: found a timeout of %d s, expected %d s", name, *seconds, timeout)
		}
	}
	for _, webhook := range mutating.Webhooks {
		check(webhook.Name, webhook.ClientConfig, webhook.TimeoutSeconds)
	}
	for _, webhook := range validating.Webhooks {
		check(webhook.Name, webhook.ClientConfig, webhook.TimeoutSeconds)
	}
}

// checkOnlyDefinitionsAreLeft checks that an uninstallation leaves only the resource definitions.
func checkOnlyDefinitionsAreLeft(t *testing.T, admin client.Client) {
	t.Helper()
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := admin.List(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, definition := range definitions.Items {
		if definition.DeletionTimestamp != nil {
			t.Errorf("%s is being deleted", definition.Name)
		}
		kept = append(kept, definition.Name)
	}
	if want := []string{
		"clustercryptoprofiles.cryptobroker.io", "clusterkeyproviders.cryptobroker.io", "cryptoprofiles.cryptobroker.io", "injectiontemplates.cryptobroker.io",
		"keyaccesspeers.cryptobroker.io", "keyaccesspolicies.cryptobroker.io", "keyproviders.cryptobroker.io",
	}; !slices.Equal(kept, want) {
		t.Errorf("found the definitions %v after the uninstallation, expected %v", kept, want)
	}
	for _, gone := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: release}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: release}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: release + "-broker-pods"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: release}},
	} {
		what := fmt.Sprintf("%T %s", gone, gone.GetName())
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !apierrors.IsNotFound(err) {
			t.Errorf("found %v for the %s after the uninstallation, expected it to be gone", err, what)
		}
	}
}
