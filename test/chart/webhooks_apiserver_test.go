// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// The operator does not run here, so a pod that is sent to the webhook is
// refused, and one that is created was not sent.
func TestOnlyPodsThatMayGetABrokerNeedTheOperator(t *testing.T) {
	inject := func(value string) map[string]string { return map[string]string{contract.InjectAnnotation: value} }
	labelled := map[string]string{contract.InjectionLabel: contract.InjectionEnabled}
	const annotatedEntry, labelledEntry = "annotated.inject.cryptobroker.io", "labelled.inject.cryptobroker.io"
	tests := map[string]struct {
		namespace   map[string]string
		annotations map[string]string
		change      func(*corev1.Pod)
		sentTo      string
	}{
		"no annotations":              {},
		"an empty map of annotations": {annotations: map[string]string{}},
		"other annotations":           {annotations: map[string]string{"a": "b"}},
		"an annotation that declines": {annotations: inject("false")},
		"an annotation that asks":     {annotations: inject("true"), sentTo: annotatedEntry},
		"True":                        {annotations: inject("True"), sentTo: annotatedEntry},
		"yes":                         {annotations: inject("yes"), sentTo: annotatedEntry},
		"False":                       {annotations: inject("False"), sentTo: annotatedEntry},
		"an empty value":              {annotations: inject(""), sentTo: annotatedEntry},
		"a labelled namespace":        {namespace: labelled, sentTo: labelledEntry},
		"a labelled namespace, other annotations":           {namespace: labelled, annotations: map[string]string{"a": "b"}, sentTo: labelledEntry},
		"a labelled namespace, an annotation that asks":     {namespace: labelled, annotations: inject("true"), sentTo: labelledEntry},
		"a labelled namespace, an annotation that declines": {namespace: labelled, annotations: inject("false")},
		"a labelled namespace, no":                          {namespace: labelled, annotations: inject("no"), sentTo: labelledEntry},
		"a namespace with another value of the label":       {namespace: map[string]string{contract.InjectionLabel: "disabled"}},
		"another value of the label and an annotation that asks": {
			namespace: map[string]string{contract.InjectionLabel: "disabled"}, annotations: inject("true"), sentTo: annotatedEntry,
		},
		"a Windows pod that asks": {annotations: inject("true"), change: func(pod *corev1.Pod) {
			pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		}},
		"a Windows pod by its node selector in a labelled namespace": {namespace: labelled, change: func(pod *corev1.Pod) {
			pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
		}},
		"a Windows pod by its node affinity that asks": {annotations: inject("true"), change: func(pod *corev1.Pod) {
			pod.Spec.Affinity = requiring("windows")
		}},
		"a pod that may also have Windows that asks": {annotations: inject("true"), sentTo: annotatedEntry, change: func(pod *corev1.Pod) {
			pod.Spec.Affinity = requiring("windows", "linux")
		}},
		"a Linux pod that asks": {annotations: inject("true"), sentTo: annotatedEntry, change: func(pod *corev1.Pod) {
			pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
			pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
		}},
		"a mirror pod in a labelled namespace": {namespace: labelled, annotations: map[string]string{corev1.MirrorPodAnnotationKey: "a"}, change: func(pod *corev1.Pod) {
			pod.Spec.NodeName = "node"
			controller := true
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node", UID: "a", Controller: &controller}}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := plainPod(namespaceFor(t, test.namespace), "pod")
			pod.Annotations = test.annotations
			if test.change != nil {
				test.change(pod)
			}
			sent(t, clusterAdmin(t).Create(t.Context(), pod), test.sentTo)
		})
	}

	for _, namespace := range []string{"kube-system", "kube-node-lease", releaseNamespace} {
		t.Run("a pod that asks in "+namespace, func(t *testing.T) {
			pod := plainPod(namespace, "")
			pod.GenerateName = "asks-"
			pod.Annotations = inject("true")
			sent(t, clusterAdmin(t).Create(t.Context(), pod), "")
		})
	}
}

// sent checks that a request was refused because the backend of a webhook entry is missing. If entry is empty, it checks that the
// request passed.
func sent(t *testing.T, err error, entry string) {
	t.Helper()
	switch {
	case entry == "" && err != nil:
		t.Errorf("found %v, expected the request to pass", err)
	case entry != "" && (!apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "`+entry+`"`)):
		t.Errorf("found %v, expected the webhook %s to have been called", err, entry)
	}
}

func TestProfilesAndKeyProvidersNeedTheOperatorUntilTheyAreDeleted(t *testing.T) {
	admin := clusterAdmin(t)
	meta := metav1.ObjectMeta{GenerateName: "default-", Finalizers: []string{"example.com/kept"}}
	spec := v1alpha1.ProfileSpec{API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha3-512"}}}
	namespaced := &v1alpha1.CryptoProfile{ObjectMeta: meta, Spec: spec}
	namespaced.Namespace = namespaceFor(t, nil)
	cluster := &v1alpha1.ClusterCryptoProfile{ObjectMeta: meta, Spec: v1alpha1.ClusterProfileSpec{ProfileSpec: spec}}
	keys := v1alpha1.KeyProviderSpec{
		Type: "kmip", Endpoints: []v1alpha1.KeyEndpoint{"kmip.example.com"},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "kmip-client"}},
	}
	provider := &v1alpha1.KeyProvider{ObjectMeta: meta, Spec: keys}
	provider.Namespace = namespaced.Namespace
	clusterProvider := &v1alpha1.ClusterKeyProvider{ObjectMeta: meta, Spec: v1alpha1.ClusterKeyProviderSpec{KeyProviderSpec: keys}}
	policy := &v1alpha1.KeyAccessPolicy{ObjectMeta: meta, Spec: v1alpha1.KeyAccessPolicySpec{Allow: []v1alpha1.KeyAccessRule{{Name: "bound", When: "caller.bound"}}}}
	policy.Namespace = namespaced.Namespace
	peer := &v1alpha1.KeyAccessPeer{ObjectMeta: meta, Spec: v1alpha1.KeyAccessPeerSpec{URL: "https://keys.example.com"}}
	peer.Namespace = namespaced.Namespace
	for entry, profile := range map[string]client.Object{
		"cryptoprofile.validate.cryptobroker.io":        namespaced,
		"clustercryptoprofile.validate.cryptobroker.io": cluster,
		"keyprovider.validate.cryptobroker.io":          provider,
		"clusterkeyprovider.validate.cryptobroker.io":   clusterProvider,
		"keyaccesspolicy.validate.cryptobroker.io":      policy,
		"keyaccesspeer.validate.cryptobroker.io":        peer,
	} {
		t.Run(entry, func(t *testing.T) {
			sent(t, admin.Create(t.Context(), profile.DeepCopyObject().(client.Object)), entry)

			createUnvalidated(t, admin, profile)
			sent(t, admin.Patch(t.Context(), profile, mergePatch(`{"spec":{"profileName":"other","serverName":"other","appliesTo":"caller.bound","timeout":"1s"}}`)), entry)
			sent(t, admin.Delete(t.Context(), profile), "")
			sent(t, admin.Patch(t.Context(), profile, mergePatch(`{"metadata":{"finalizers":null}}`)), "")
		})
	}
}

// createUnvalidated creates a profile while the validating webhook is not configured, and returns when the webhook is configured again.
func createUnvalidated(t *testing.T, admin client.Client, profile client.Object) {
	t.Helper()
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: release}, configuration); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	probe := profile.DeepCopyObject().(client.Object)
	eventually(t, "profiles to need no webhook", func(ctx context.Context) error {
		return admin.Create(ctx, profile)
	})
	configuration.ResourceVersion, configuration.UID = "", ""
	create(t, admin, configuration)
	eventually(t, "profiles to need the webhook", func(ctx context.Context) error {
		if err := admin.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll); !apierrors.IsInternalError(err) {
			return fmt.Errorf("found %s, expected the webhook to be called", fmt.Sprint(err))
		}
		return nil
	})
}

// requiring is an affinity to nodes by their operating system.
func requiring(systems ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: systems}}}},
	}}}
}
