// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
)

// hashing is a profile that hashes.
func hashing(namespace, name, profileName, algorithm string) *v1alpha1.CryptoProfile {
	p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.ProfileName, p.Spec.API.HashData = profileName, &v1alpha1.HashData{HashAlg: algorithm}
	return p
}

// clusterHashing is a profile of the namespaces with the label team=name that hashes.
func clusterHashing(name, algorithm string) *v1alpha1.ClusterCryptoProfile {
	p := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: algorithm}
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}
	return p
}

// create creates an object, and deletes it when the test ends.
func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// change changes the algorithm of a profile. No webhook refuses the change here.
func change(t *testing.T, c client.Client, object client.Object, algorithm string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"api":{"hashData":{"hashAlg":%q}}}}`, algorithm)
	if err := c.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// rowsOf runs the command profiles.
func rowsOf(t *testing.T, namespace string) []effective.Row {
	t.Helper()
	code, stdout, stderr := plugin(t, "profiles", "-n", namespace, "-o", "json")
	if code != program.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var answer struct{ Profiles []effective.Row }
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return answer.Profiles
}

// awaitState waits until an object has a state in a namespace.
func awaitState(t *testing.T, namespace, from, state string) effective.Row {
	t.Helper()
	var found effective.Row
	eventually(t, from+" is "+state, func() bool {
		for _, r := range rowsOf(t, namespace) {
			if r.From == from {
				found = r
			}
		}
		return found.State == state
	})
	return found
}

// awaitWithheld waits until the operator says that a profile is withheld, and returns the message.
func awaitWithheld(t *testing.T, c client.Client, object client.Object, conditions func() []metav1.Condition) string {
	t.Helper()
	var condition *metav1.Condition
	eventually(t, "the operator says that the profile is withheld", func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		condition = meta.FindStatusCondition(conditions(), v1alpha1.ConditionDowngradeWithheld)
		return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == object.GetGeneration()
	})
	return condition.Message
}

func TestTheProfilesOfANamespaceAreListedWithTheObjectThatCounts(t *testing.T) {
	c := reconcile(t)
	ns := namespace(t, map[string]string{"team": "listed"})
	create(t, c, hashing(ns, "early", "", "sha-512"))
	create(t, c, clusterHashing("listed", "sha3-512"))
	create(t, c, hashing(ns, "loses", "listed", "sha3-256"))
	awaitState(t, ns, "cprof/early", effective.StateServed)
	awaitState(t, ns, "ccprof/listed", effective.StateServed)
	if lost := awaitState(t, ns, "cprof/loses", "conflict"); lost.Profile != "listed" || !strings.Contains(lost.Why, `belongs to ClusterCryptoProfile "listed", which counts before a CryptoProfile`) {
		t.Errorf("found %+v", lost)
	}
	var order []string
	for _, r := range rowsOf(t, ns) {
		order = append(order, r.Profile+" "+r.From+" "+r.State)
	}
	expect(t, order, "early cprof/early served", "listed ccprof/listed served", "listed cprof/loses conflict")
	eventually(t, "the operator has counted the pods", func() bool {
		_, stdout, _ := plugin(t, "profiles", "-n", ns)
		return strings.Contains(stdout, "should serve the set ") && strings.Contains(stdout, "early     cprof/early     served     256        0/0")
	})
	if code, _, stderr := plugin(t, "profiles", "-n", "kube-system"); code != program.ExitFailed || !strings.Contains(stderr, "namespace kube-system never gets profiles") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if code, stdout, stderr := plugin(t, "profiles", "-n", uncovered(t)); code != program.ExitOK || !strings.Contains(stdout, "has no set of profiles") || stderr != "No profiles found.\n" {
		t.Errorf("exit code %d, found %q, %q", code, stdout, stderr)
	}
}

func TestAWithheldProfileIsShownAndAllowed(t *testing.T) {
	c, ns := reconcile(t), uncovered(t)
	p := hashing(ns, "payments", "", "sha-512")
	create(t, c, p)
	awaitState(t, ns, "cprof/payments", effective.StateServed)
	if code, stdout, _ := plugin(t, "diff", "-n", ns); code != program.ExitOK || stdout != "Nothing is withheld.\n" {
		t.Errorf("exit code %d, found %q", code, stdout)
	}
	if code, stdout, _ := plugin(t, "allow", "cprof/payments", "-n", ns); code != program.ExitOK || stdout != "Nothing is withheld.\n" {
		t.Errorf("exit code %d, found %q", code, stdout)
	}
	change(t, c, p, "sha-256")
	condition := awaitWithheld(t, c, p, func() []metav1.Condition { return p.Status.Conditions })
	awaitState(t, ns, "cprof/payments", effective.StateWithheld)

	const weaker = `spec.api.hashData.hashAlg: "sha-256" has a strength of 128 bits, "sha-512" had 256 bits`
	code, stdout, stderr := plugin(t, "diff", "cryptoprofile/payments", "-n", ns)
	if code != program.ExitFailed || stderr != "" || !strings.Contains(stdout, weaker) ||
		!strings.Contains(stdout, "which is still served") || !strings.Contains(stdout, "kubectl crypto-broker allow cprof/payments -n "+ns+"\n") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	_, stdout, _ = plugin(t, "diff", "-n", ns, "-o", "json")
	var answer struct{ Withheld []withheldChange }
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || len(answer.Withheld) != 1 {
		t.Fatalf("%v: %s", err, stdout)
	}
	if digest := answer.Withheld[0].Digest; !strings.Contains(condition, v1alpha1.AllowWeakerAnnotation+"="+digest) {
		t.Errorf("the plugin found the digest %s, and the operator says\n%s", digest, condition)
	}
	if code, _, stderr := plugin(t, "diff", "cprof/other", "-n", ns); code != program.ExitFailed || !strings.Contains(stderr, `there is no CryptoProfile "other" in namespace `+ns) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}

	code, stdout, stderr = plugin(t, "allow", "cprof/payments", "-n", ns)
	if code != program.ExitFailed || !strings.Contains(stdout, weaker) || !strings.Contains(stdout, "Allow exactly this? [y/N]") || !strings.Contains(stderr, "nothing was allowed: it was not confirmed") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	author := editor(t, ns)
	mayWriteProfiles(t, ns, author)
	code, _, stderr = plugin(t, "allow", "cprof/payments", "-n", ns, "--yes", "--as", author)
	if code != program.ExitFailed || !strings.Contains(stderr, `nothing was allowed: the right to weaken cryptoprofiles "payments" in namespace `+ns+` is missing`) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.Annotations[v1alpha1.AllowWeakerAnnotation] != "" {
		t.Errorf("%v, found the annotations %v", err, p.Annotations)
	}

	code, stdout, stderr = plugin(t, "allow", "cprof/payments", "-n", ns, "--yes")
	if code != program.ExitOK || !strings.Contains(stdout, "The brokers of namespace "+ns+" should serve it") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	awaitState(t, ns, "cprof/payments", effective.StateServed)
	if code, stdout, _ := plugin(t, "diff", "-n", ns); code != program.ExitOK {
		t.Errorf("exit code %d, found %q", code, stdout)
	}
}

// mayWriteProfiles gives a user all rights on the profiles of a namespace, except the verb weaken, and the right to read
// ClusterCryptoProfiles and namespaces.
func mayWriteProfiles(t *testing.T, namespace, user string) {
	t.Helper()
	rights := apiServer.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writes-profiles-of-" + namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"cryptoprofiles", "clustercryptoprofiles"}, Verbs: []string{"get", "list", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get", "list"}},
	}}
	if _, err := rights.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := rights.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{
			rights.ClusterRoleBindings().Delete(context.Background(), role.Name, metav1.DeleteOptions{}),
			rights.ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	eventually(t, user+" may read profiles", func() bool {
		code, _, _ := plugin(t, "profiles", "-n", namespace, "--as", user)
		return code == program.ExitOK
	})
}

// hesitant is a user who does something else before the answer yes.
type hesitant struct {
	before func()
	text   io.Reader
}

func (a *hesitant) Read(p []byte) (int, error) {
	if a.before != nil {
		a.before()
		a.before = nil
	}
	return a.text.Read(p)
}

func TestAnAllowanceIsForTheChangeThatWasShown(t *testing.T) {
	c, ns := reconcile(t), uncovered(t)
	p := hashing(ns, "payments", "", "sha3-512")
	create(t, c, p)
	awaitState(t, ns, "cprof/payments", effective.StateServed)
	change(t, c, p, "sha3-384")
	awaitState(t, ns, "cprof/payments", effective.StateWithheld)
	var stdout, stderr bytes.Buffer
	person := &hesitant{before: func() { change(t, c, p, "sha3-256") }, text: strings.NewReader("y\n")}
	code := run(t.Context(), []string{"allow", "cprof/payments", "-n", ns, "--timeout", "3s", "--kubeconfig", kubeconfig}, person, &stdout, &stderr)
	if code != program.ExitFailed || !strings.Contains(stderr.String(), "the change is allowed, and after 3s not served yet in namespace "+ns) {
		t.Errorf("exit code %d, %s\n%s", code, &stderr, &stdout)
	}
	set, err := apiServer.CoreV1().ConfigMaps(ns).Get(t.Context(), v1alpha1.ProfilesConfigMap, metav1.GetOptions{})
	if err != nil || !strings.Contains(set.Data["Profiles.yaml"], "sha3-512") {
		t.Errorf("%v, found the set\n%s", err, set.Data["Profiles.yaml"])
	}
	awaitState(t, ns, "cprof/payments", effective.StateWithheld)
}

func TestAClusterProfileIsAllowedWhereItIsWithheld(t *testing.T) {
	c := reconcile(t)
	one, two := namespace(t, map[string]string{"team": "wide"}), namespace(t, map[string]string{"team": "wide"})
	p := clusterHashing("wide", "sha-512")
	create(t, c, p)
	for _, ns := range []string{one, two} {
		awaitState(t, ns, "ccprof/wide", effective.StateServed)
	}
	change(t, c, p, "sha-256")
	awaitWithheld(t, c, p, func() []metav1.Condition { return p.Status.Conditions })
	code, stdout, _ := plugin(t, "diff", "ccprof/wide", "-A")
	if code != program.ExitFailed || !strings.Contains(stdout, "is withheld in 2 namespaces (") || !strings.Contains(stdout, "allow ccprof/wide -A\n") {
		t.Errorf("exit code %d, found\n%s", code, stdout)
	}
	if code, _, stderr := plugin(t, "allow", "cprof/wide", "-A"); code != program.ExitUsage || !strings.Contains(stderr, "--all-namespaces is for a ClusterCryptoProfile") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	code, stdout, stderr := plugin(t, "allow", "ccprof/wide", "-A", "--yes")
	if code != program.ExitOK || !strings.Contains(stdout, "The brokers of namespace "+one) || !strings.Contains(stdout, "The brokers of namespace "+two) {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}

func TestAProfileOfANamespaceWithoutBaselineIsShownAsItIsWanted(t *testing.T) {
	ns := uncovered(t)
	// The operator writes this if it does not know what the namespace served.
	_, err := apiServer.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: v1alpha1.ProfilesConfigMap, Annotations: map[string]string{v1alpha1.ProfilesHistoryAnnotation: `{"lost":true}`},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	profileIn(t, ns, "orders", v1alpha1.ReasonDowngradeWithheld, "It is withheld.")
	code, stdout, _ := plugin(t, "diff", "-n", ns)
	if code != program.ExitFailed || !strings.Contains(stdout, "it may be weaker than a profile that was served before") || !strings.Contains(stdout, "HashAlg: sha-256") {
		t.Errorf("exit code %d, found\n%s", code, stdout)
	}
}
