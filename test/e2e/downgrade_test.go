// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// profileAdministrator is an administrator of a namespace who may write its profiles, as the chart's
// rbac.aggregateWriteToEdit lets them.
func profileAdministrator(t testing.TB, namespace string) client.Client {
	t.Helper()
	administrator := namespaceAdministrator(t, namespace)
	must(t, shared.client.Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "profiles", Namespace: namespace},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"cryptoprofiles"},
			Verbs: []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}}},
	}))
	must(t, shared.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "profiles", Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "profiles"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "administrator-of-" + namespace}},
	}))
	return administrator
}

func TestANamespaceAdministratorCannotWeakenWhatPodsAreServed(t *testing.T) {
	t.Parallel()
	tier := map[string]string{"e2e-guard": fmt.Sprint(time.Now().UnixNano())}
	namespace := newNamespace(t, tier)
	policy := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-guard-"}}
	policy.Spec.ProfileSpec = hashing("Default", "sha3-512")
	policy.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: tier}
	must(t, shared.client.Create(t.Context(), policy))
	t.Cleanup(func() {
		if err := shared.client.Delete(context.Background(), policy); err != nil {
			t.Errorf("removing the ClusterCryptoProfile %s: %v", policy.Name, err)
		}
	})
	profilesConfigMap(t, namespace)
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	awaitCalls(t, pod, statsPort, mustStats(t, pod), 10)

	administrator := profileAdministrator(t, namespace)
	weak := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}, Spec: hashing("Default", "sha-256")}
	must(t, administrator.Create(t.Context(), weak)) // it has no effect, because the cluster has a profile of the same name
	err := administrator.Patch(t.Context(), weak, client.RawPatch(types.MergePatchType,
		[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"sha256:00"}}}`, v1alpha1.AllowWeakerAnnotation))))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `verb "weaken"`) {
		t.Errorf("the annotation that allows a weaker profile is answered with %v, expected a refusal", err)
	}

	// Somebody removes the label from the namespace. No webhook sees that, and the weaker profile would be served.
	must(t, shared.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"e2e-guard":null}}}`))))
	var digest []string
	eventually(t, patience, "the weaker profile is withheld", func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(weak), weak); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(weak.Status.Conditions, v1alpha1.ConditionDowngradeWithheld)
		if condition == nil || condition.Status != metav1.ConditionTrue {
			return fmt.Errorf("found %+v", weak.Status.Conditions)
		}
		digest = workload.DowngradeDigest.FindStringSubmatch(condition.Message)
		return nil
	})
	stats := awaitCalls(t, pod, statsPort, mustStats(t, pod), 30)
	expectNoFailure(t, pod, stats)
	if len(stats.Observed) != 1 || stats.Algorithm != "sha3-512" {
		t.Errorf("found the algorithms %+v, expected sha3-512 alone", stats.Observed)
	}

	if len(digest) < 2 {
		t.Fatal("the condition does not say how to allow it")
	}
	began := time.Now()
	_, err = kubectl(t, "", "annotate", "cryptoprofile", "default", "--namespace", namespace, "--overwrite", v1alpha1.AllowWeakerAnnotation+"="+digest[1])
	must(t, err)
	awaitAlgorithm(t, pod, "sha-256", began, changeTimeout)
	expectNoFailure(t, pod, mustStats(t, pod))
}
