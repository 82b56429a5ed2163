// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// namespaceAdministrator is a client of a user who has the ClusterRole admin in some namespaces, and nothing else.
func namespaceAdministrator(t testing.TB, namespaces ...string) client.Client {
	t.Helper()
	user := "administrator-of-" + namespaces[0]
	for _, namespace := range namespaces {
		must(t, shared.client.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "administrator", Namespace: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
	}
	return as(t, user)
}

// profilesConfigMap waits for the ConfigMap that the operator writes into a namespace.
func profilesConfigMap(t testing.TB, namespace string) *corev1.ConfigMap {
	t.Helper()
	found := &corev1.ConfigMap{}
	eventually(t, patience, "the namespace has its profiles", func() error {
		return shared.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, found)
	})
	return found
}

func TestANamespaceAdministratorCannotWriteTheProfilesConfigMap(t *testing.T) {
	t.Parallel()
	namespace, empty := newNamespace(t, nil), newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	before := profilesConfigMap(t, namespace)
	administrator := namespaceAdministrator(t, namespace, empty)
	weak := map[string]string{"Profiles.yaml": "- Name: Default\n  API:\n    HashData:\n      HashAlg: sha-256\n"}
	named := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProfilesConfigMap, Namespace: namespace}, Data: weak,
		}
	}

	for sentence, attempt := range map[string]func() error{
		"by a merge patch": func() error {
			return administrator.Patch(t.Context(), named(namespace), client.RawPatch(types.MergePatchType,
				[]byte(`{"data":{"Profiles.yaml":"[]"}}`)))
		},
		"by a JSON patch": func() error {
			return administrator.Patch(t.Context(), named(namespace), client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"remove","path":"/data/Profiles.yaml"}]`)))
		},
		"by server-side apply": func() error {
			return administrator.Patch(t.Context(), named(namespace), client.Apply, client.FieldOwner("administrator"), client.ForceOwnership) //nolint:staticcheck // the request is what counts, not the newer way to make it
		},
		"by replacing it": func() error {
			changed := before.DeepCopy()
			changed.Data = weak
			return administrator.Update(t.Context(), changed)
		},
		"by making it immutable": func() error {
			changed := before.DeepCopy()
			changed.Immutable = new(true)
			return administrator.Update(t.Context(), changed)
		},
		"by deleting it": func() error { return administrator.Delete(t.Context(), named(namespace)) },
		"by deleting all ConfigMaps": func() error {
			return administrator.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace))
		},
		"by deleting all ConfigMaps of that name": func() error {
			return administrator.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace),
				client.MatchingFields{"metadata.name": v1alpha1.ProfilesConfigMap})
		},
		"by creating it before there are profiles": func() error { return administrator.Create(t.Context(), named(empty)) },
		"by applying it before there are profiles": func() error {
			return administrator.Patch(t.Context(), named(empty), client.Apply, client.FieldOwner("administrator")) //nolint:staticcheck // see above
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := attempt()
			expectRefused(t, err, v1alpha1.ProfilesConfigMap, "CryptoProfile")
			if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("found %v, expected the policy to forbid it", err)
			}
		})
	}
	after := profilesConfigMap(t, namespace)
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the ConfigMap was changed: %+v", after)
	}

	// The policy allows everything else.
	own := named(namespace)
	own.Name = "application"
	must(t, administrator.Create(t.Context(), own))
	own.Data["more"] = "data"
	must(t, administrator.Update(t.Context(), own))
	must(t, administrator.Delete(t.Context(), own))
	found := &corev1.ConfigMapList{}
	must(t, shared.client.List(t.Context(), found, client.InNamespace(empty)))
	for _, each := range found.Items {
		if each.Name == v1alpha1.ProfilesConfigMap {
			t.Errorf("the administrator made %s in %s", each.Name, empty)
		}
	}
}

func TestANamespaceThatIsDeletedTakesItsProfilesAlong(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	profilesConfigMap(t, namespace)
	expectDeleted(t, namespace)
}
