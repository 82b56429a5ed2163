// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// verdict checks that a request passed, or that a policy refused it with a
// message that contains want.
func verdict(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("found %v, expected the request to pass", err)
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("found %v, expected it to be forbidden with %q", err, want)
	}
}

func TestOnlyTheOperatorWritesTheProfilesConfigMap(t *testing.T) {
	const refusal = "only the Crypto Broker Operator may write the ConfigMap crypto-broker-profiles"
	writes := map[string]struct {
		exists bool
		call   func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error
	}{
		"create it": {call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.Create(t.Context(), configMap)
		}},
		"replace it": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			configMap.Data["Profiles.yaml"] = "- Name: Weak\n"
			return c.Update(t.Context(), configMap)
		}},
		"replace it by itself": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.Update(t.Context(), configMap)
		}},
		"delete it": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.Delete(t.Context(), configMap)
		}},
	}
	forbidden := map[string]struct {
		exists bool
		call   func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error
	}{
		"patch it": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.Patch(t.Context(), configMap, mergePatch(`{"data":{"Profiles.yaml":"- Name: Weak\n"}}`))
		}},
		"patch a label of it": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.Patch(t.Context(), configMap, mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))
		}},
		"create it by apply": {call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.Apply(t.Context(), applycorev1.ConfigMap(configMap.Name, configMap.Namespace).WithData(configMap.Data), client.FieldOwner("test"))
		}},
		"delete it with all others": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(configMap.Namespace))
		}},
		"delete it by a label": {exists: true, call: func(t *testing.T, c client.Client, configMap *corev1.ConfigMap) error {
			return c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(configMap.Namespace), client.MatchingLabels{"owner": "operator"})
		}},
	}
	try := func(exists bool, who func(*testing.T, string) client.Client, call func(*testing.T, client.Client, *corev1.ConfigMap) error, want string) func(*testing.T) {
		return func(t *testing.T) {
			namespace := namespaceFor(t, nil)
			configMap := profilesConfigMap(namespace)
			configMap.Labels = map[string]string{"owner": "operator"}
			if exists {
				create(t, operator(t), configMap)
			}
			verdict(t, call(t, who(t, namespace), configMap), want)
			if exists && want != "" {
				found := &corev1.ConfigMap{}
				if err := clusterAdmin(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, found); err != nil {
					t.Fatal(err)
				}
				if found.ResourceVersion != configMap.ResourceVersion {
					t.Errorf("the ConfigMap was changed")
				}
			}
		}
	}
	for name, test := range writes {
		t.Run("the operator can "+name, try(test.exists, func(t *testing.T, _ string) client.Client { return operator(t) }, test.call, ""))
		t.Run("a namespace admin cannot "+name, try(test.exists, namespaceAdmin, test.call, refusal))
		t.Run("a cluster admin cannot "+name, try(test.exists, func(t *testing.T, _ string) client.Client { return clusterAdmin(t) }, test.call, refusal))
	}
	for name, test := range forbidden {
		t.Run("a namespace admin cannot "+name, try(test.exists, namespaceAdmin, test.call, refusal))
	}
}

func TestOnlyTheOperatorWritesItsRecord(t *testing.T) {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: v1alpha1.RecordConfigMapPrefix + "7"}}
	const refusal = "only the Crypto Broker Operator may write the ConfigMap crypto-broker-record-7"
	verdict(t, clusterAdmin(t).Create(t.Context(), page.DeepCopy()), refusal)
	create(t, operator(t), page)
	page.Data = map[string]string{"namespaces": ""}
	verdict(t, clusterAdmin(t).Update(t.Context(), page.DeepCopy()), refusal)
	verdict(t, operator(t).Update(t.Context(), page), "")
	verdict(t, clusterAdmin(t).Delete(t.Context(), page), refusal)
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceFor(t, nil), Name: v1alpha1.RecordConfigMapPrefix + "7"}}
	verdict(t, namespaceAdmin(t, elsewhere.Namespace).Create(t.Context(), elsewhere), "")
}

func TestOtherConfigMapsAreNobodysBusiness(t *testing.T) {
	namespace := namespaceFor(t, nil)
	admin := namespaceAdmin(t, namespace)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "crypto-broker-profiles-"}}
	create(t, admin, configMap)
	configMap.Data = map[string]string{"a": "b"}
	if err := admin.Update(t.Context(), configMap); err != nil {
		t.Error(err)
	}
	if err := admin.Delete(t.Context(), configMap); err != nil {
		t.Error(err)
	}
}

func TestAnyoneEmptiesANamespaceThatIsBeingDeleted(t *testing.T) {
	namespace := namespaceFor(t, nil)
	create(t, operator(t), profilesConfigMap(namespace))
	if err := clusterAdmin(t).Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	// The test does what the namespace controller does. Like the controller, it tries again if the API server has not seen the
	// deletion yet.
	controller := as(t, "system:serviceaccount:kube-system:namespace-controller", "system:serviceaccounts", "system:authenticated")
	eventually(t, "the deletion of the ConfigMap", func(ctx context.Context) error {
		return controller.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace))
	})
	err := clusterAdmin(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("found %v, expected the ConfigMap to be gone", err)
	}
}

func TestTheOperatorCreatesNothingButItsOwn(t *testing.T) {
	namespace := namespaceFor(t, nil)
	configMap := func(namespace, name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, test := range map[string]struct {
		object  client.Object
		refusal string
	}{
		"the ConfigMap of the profiles": {object: configMap(namespace, v1alpha1.ProfilesConfigMap)},
		"a page of its record":          {object: configMap(releaseNamespace, v1alpha1.RecordConfigMapPrefix+"a")},
		"a page in another namespace":   {configMap(namespace, v1alpha1.RecordConfigMapPrefix+"a"), "may create configmaps of the name crypto-broker-profiles only, found crypto-broker-record-a"},
		"a page of another name":        {configMap(releaseNamespace, v1alpha1.RecordConfigMapPrefix+"aa"), "may create configmaps of the name crypto-broker-profiles only"},
		"another ConfigMap":             {configMap(namespace, "other"), "may create configmaps of the name crypto-broker-profiles only, found other"},
		"the Secret of its CA":          {object: secret(releaseNamespace, release+"-ca")},
		"the Secret of its keys":        {object: secret(releaseNamespace, release+"-signing")},
		"another Secret":                {secret(releaseNamespace, "other"), "may create secrets of the name crypto-broker-operator-ca or crypto-broker-operator-signing only, found other"},
		"a Secret of another namespace": {secret(namespace, release+"-ca"), `cannot create resource "secrets"`},
		"a ConfigMap of a generated name": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "crypto-broker-profiles-"}},
			"may create configmaps of the name crypto-broker-profiles only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			verdict(t, operator(t).Create(t.Context(), test.object), test.refusal)
		})
	}
}
