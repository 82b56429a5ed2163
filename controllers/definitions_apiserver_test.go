// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

const (
	namespacedDefinition = "cryptoprofiles.cryptobroker.io"
	clusterDefinition    = "clustercryptoprofiles.cryptobroker.io"
)

// deleteDefinition deletes a resource definition, and waits until it is gone. The end of the test restores it.
func deleteDefinition(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() { makeDefinition(t, name) })
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := apiServer.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition is gone", func() error {
		err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("found: %w", err)
	})
}

// makeDefinition makes a resource definition, if there is none, and waits until it
// is served.
func makeDefinition(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "config", "crd", "bases", "cryptobroker.io_"+name[:len(name)-len(".cryptobroker.io")]+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, definition); err != nil {
		t.Fatal(err)
	}
	// The API has times in seconds. Wait, so that the earlier objects are older.
	before := time.Now().Truncate(time.Second)
	ctx := context.Background()
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		if time.Since(before) < time.Second {
			return false, nil
		}
		if err := apiServer.Create(ctx, definition.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, err
		}
		served := apiServer.List(ctx, &v1alpha1.CryptoProfileList{}) == nil && apiServer.List(ctx, &v1alpha1.ClusterCryptoProfileList{}) == nil
		return served, nil
	})
	if err != nil {
		t.Fatalf("the definition %s is not served: %v", name, err)
	}
}

// marked changes the ConfigMap of a namespace, and waits until the operator has corrected it. Then the operator has seen all
// earlier changes.
func marked(t *testing.T, ns string) {
	t.Helper()
	set := configMap(ns)
	update(t, set, func(c *corev1.ConfigMap) { delete(c.Labels, "app.kubernetes.io/part-of") })
	eventually(t, "the operator has looked at the namespace", func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Labels["app.kubernetes.io/part-of"] == "" {
			return fmt.Errorf("found the labels %v", set.Labels)
		}
		return nil
	})
}

// withholdDefinitions takes the operator's right to read definitions until the test ends.
func withholdDefinitions(t *testing.T) {
	t.Helper()
	change := func(change func(*rbacv1.ClusterRole)) {
		role := &rbacv1.ClusterRole{}
		ctx := context.Background()
		if err := apiServer.Get(ctx, client.ObjectKey{Name: "crypto-broker-operator"}, role); err != nil {
			t.Fatal(err)
		}
		change(role)
		if err := apiServer.Update(ctx, role); err != nil {
			t.Fatal(err)
		}
	}
	var all []rbacv1.PolicyRule
	change(func(role *rbacv1.ClusterRole) {
		all = role.Rules
		role.Rules = slices.DeleteFunc(slices.Clone(all), func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "customresourcedefinitions") })
	})
	t.Cleanup(func() { change(func(role *rbacv1.ClusterRole) { role.Rules = all }) })
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right is gone", func() error {
		err := operator.Get(t.Context(), client.ObjectKey{Name: namespacedDefinition}, &apiextensionsv1.CustomResourceDefinition{})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("found: %w", err)
	})
}

func TestProfilesThatGoWithTheirDefinitionStayServed(t *testing.T) {
	o := start(t)
	names := []string{namespace(t, nil), namespace(t, nil), namespace(t, nil)}
	both := namespace(t, map[string]string{"tier": "definitions"})
	for _, ns := range append(names, both) {
		create(t, hashing(ns, "orders", "sha-512"))
		create(t, hashing(ns, "payments", "sha3-512"))
	}
	policy := clusterHashing("policy", "sha-384", map[string]string{"tier": "definitions"})
	create(t, policy)
	own := fileOf("orders", "sha-512", "payments", "sha3-512")
	mixed := fileOf("orders", "sha-512", "payments", "sha3-512", "policy", "sha-384")
	for _, ns := range names {
		expectFile(t, ns, own)
	}
	expectFile(t, both, mixed)
	broker := runPod(t, names[0])
	expectStatus(t, hashing(names[0], "orders", ""), has{propagated: "True AllUpdated", pods: 1, updated: 1})

	deleteDefinition(t, namespacedDefinition)
	for _, ns := range append(names, both) {
		expectEvent(t, configMap(ns), "Warning", "ProfilesHeld", namespacedDefinition)
		marked(t, ns)
		if n := numbers(t, o.metrics, ns)["crypto_broker_operator_sets_held"]; n != 1 {
			t.Errorf("the number of sets of namespace %s that are held is %v, expected 1", ns, n)
		}
	}
	for _, ns := range names {
		expectFile(t, ns, own)
	}
	expectFile(t, both, mixed)
	expectServed(t, own, broker)
	expectStatus(t, policy, has{accepted: "True Valid", namespaces: 1, says: "profiles that went with their definition are not taken out of service"})

	// The set also stays when the definition exists again, without profiles.
	makeDefinition(t, namespacedDefinition)
	create(t, hashing(names[0], "orders", "sha-512"))
	eventually(t, "the set with a part of its profiles is held", func() error {
		p := hashing(names[0], "orders", "")
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if !isCondition(p.Status, v1alpha1.ConditionDegraded, "True ProfilesHeld") || !isCondition(p.Status, v1alpha1.ConditionAccepted, "True Valid") {
			return errNotYet(p.Status)
		}
		return nil
	})
	expectFile(t, names[0], own)
	marked(t, names[1])
	expectFile(t, names[1], own)

	// The set also stays with a new operator, which has seen none of this.
	o.stop()
	o = start(t)
	expectEvent(t, configMap(names[1]), "Warning", "ProfilesHeld", namespacedDefinition+" was deleted and made again")
	marked(t, names[1])
	expectFile(t, names[1], own)

	// When all profiles exist again, the set follows them: they can be changed and deleted.
	create(t, hashing(names[0], "payments", "sha-512"))
	expectFile(t, names[0], fileOf("orders", "sha-512", "payments", "sha-512"))
	expectEvent(t, configMap(names[0]), "Normal", "ProfilesReleased", "")
	if err := apiServer.Delete(t.Context(), hashing(names[0], "orders", "")); err != nil {
		t.Fatal(err)
	}
	expectFile(t, names[0], fileOf("payments", "sha-512"))
	if n, is := numbers(t, o.metrics, names[0])["crypto_broker_operator_sets_held"]; is {
		t.Errorf("the number of sets that are held is %v, expected none", n)
	}
}

func TestClusterProfilesThatGoWithTheirDefinitionStayServed(t *testing.T) {
	start(t)
	ns := namespace(t, map[string]string{"tier": "cluster-definition"})
	create(t, clusterHashing("everywhere", "sha-384", map[string]string{"tier": "cluster-definition"}))
	expectFile(t, ns, fileOf("everywhere", "sha-384"))
	deleteDefinition(t, clusterDefinition)
	expectEvent(t, configMap(ns), "Warning", "ProfilesHeld", `profile "everywhere": `)
	makeDefinition(t, clusterDefinition)
	marked(t, ns)
	expectFile(t, ns, fileOf("everywhere", "sha-384"))
	again := clusterHashing("everywhere", "sha-512", map[string]string{"tier": "cluster-definition"})
	create(t, again)
	expectFile(t, ns, fileOf("everywhere", "sha-512"))
	if err := apiServer.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	expectNoFile(t, ns)
}

func TestNothingIsTakenOutOfServiceWhileTheDefinitionCannotBeRead(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	orders, payments := hashing(ns, "orders", "sha-512"), hashing(ns, "payments", "sha3-512")
	create(t, orders)
	create(t, payments)
	expectFile(t, ns, fileOf("orders", "sha-512", "payments", "sha3-512"))
	withholdDefinitions(t)
	if err := apiServer.Delete(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, payments, has{accepted: "False NotWritten", says: "whether they were deleted or went with the resource definition"})
	expectFile(t, ns, fileOf("orders", "sha-512", "payments", "sha3-512"))
}
