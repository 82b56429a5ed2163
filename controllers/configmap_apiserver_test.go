// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestProfilesBecomeOneConfigMap(t *testing.T) {
	start(t)
	ns := namespace(t, map[string]string{"tier": "one"})
	create(t, clusterHashing("everywhere-one", "sha-384", map[string]string{"tier": "one"}))
	create(t, hashing(ns, "orders", "sha3-512"))
	expectFile(t, ns, fileOf("everywhere-one", "sha-384", "orders", "sha3-512"))

	var set corev1.ConfigMap
	if err := apiServer.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}, &set); err != nil {
		t.Fatal(err)
	}
	if set.Labels["app.kubernetes.io/managed-by"] != "crypto-broker-operator" {
		t.Errorf("labels are %v", set.Labels)
	}
	if len(set.ManagedFields) != 1 || set.ManagedFields[0].Manager != v1alpha1.FieldManager {
		t.Errorf("managed fields are %v", set.ManagedFields)
	}
}

func TestAClusterProfileFollowsTheLabelsOfNamespaces(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	create(t, clusterHashing("labelled", "sha-384", map[string]string{"tier": "labelled"}))
	create(t, hashing(ns, "orders", "sha3-512"))
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	update(t, object, func(n *corev1.Namespace) { n.Labels["tier"] = "labelled" })
	expectFile(t, ns, fileOf("labelled", "sha-384", "orders", "sha3-512"))
	expectStatus(t, &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "labelled"}}, has{accepted: "True Valid", namespaces: 1})
	update(t, object, func(n *corev1.Namespace) { delete(n.Labels, "tier") })
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	expectStatus(t, &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "labelled"}}, has{accepted: "True NoNamespaces"})
}

func TestNobodyElseDecidesWhatIsInTheConfigMap(t *testing.T) {
	start(t)
	want := fileOf("orders", "sha3-512")
	set := func(ns string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}}
	}
	tests := map[string]func(t *testing.T, ns string){
		"one that was deleted is made again": func(t *testing.T, ns string) {
			if err := apiServer.Delete(t.Context(), set(ns)); err != nil {
				t.Fatal(err)
			}
		},
		"one that was edited is put right": func(t *testing.T, ns string) {
			update(t, set(ns), func(c *corev1.ConfigMap) { c.Data["Profiles.yaml"] = "[]" })
		},
		"a signature that was edited is put right": func(t *testing.T, ns string) {
			update(t, set(ns), func(c *corev1.ConfigMap) { c.Data["Profiles.sig"] = "{}" })
		},
		"a signature that was taken out is put back": func(t *testing.T, ns string) {
			update(t, set(ns), func(c *corev1.ConfigMap) { delete(c.Data, "Profiles.sig") })
		},
		"a file beside the profiles is removed": func(t *testing.T, ns string) {
			update(t, set(ns), func(c *corev1.ConfigMap) { c.Data["Other.yaml"] = "[]" })
		},
		"a binary file beside the profiles is removed": func(t *testing.T, ns string) {
			update(t, set(ns), func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"Other.sig": {1}} })
		},
		"one that was made immutable is replaced": func(t *testing.T, ns string) {
			immutable := true
			update(t, set(ns), func(c *corev1.ConfigMap) {
				c.Data["Profiles.yaml"] = "[]"
				c.Immutable = &immutable
			})
		},
		"labels that were taken off are put back": func(t *testing.T, ns string) {
			update(t, set(ns), func(c *corev1.ConfigMap) { c.Labels = map[string]string{"keep": "this"} })
		},
	}
	for sentence, disturb := range tests {
		t.Run(sentence, func(t *testing.T) {
			ns := namespace(t, nil)
			create(t, hashing(ns, "orders", "sha3-512"))
			expectFile(t, ns, want)
			disturb(t, ns)
			eventually(t, "the ConfigMap is as it was", func() error {
				var found corev1.ConfigMap
				if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(set(ns)), &found); err != nil {
					return err
				}
				if found.Data["Profiles.yaml"] != want || len(found.Data["Profiles.sig"]) < 100 || len(found.Data) != 2 || len(found.BinaryData) != 0 || found.Immutable != nil || found.Labels["app.kubernetes.io/managed-by"] == "" {
					return errNotYet(found)
				}
				return nil
			})
		})
	}
}

func TestAConfigMapThatWasThereBeforeIsTakenOver(t *testing.T) {
	ns := namespace(t, nil)
	create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap},
		Data:       map[string]string{"Profiles.yaml": fileOf("weak", "sha-256")},
	})
	create(t, hashing(ns, "orders", "sha3-512"))
	start(t)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
}

func TestTheLastProfileLeavesAnEmptySetUntilTheLastBrokerHasGone(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	profile := hashing(ns, "orders", "sha3-512")
	create(t, profile)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	pod := runPod(t, ns)
	if err := apiServer.Delete(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	expectFile(t, ns, "[]\n")
	expectServed(t, "[]\n", pod)
	if err := apiServer.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}}); err != nil {
		t.Fatal(err)
	}
	expectFile(t, ns, "[]\n") // otherwise the pod would fall back to its snapshot from admission

	update(t, pod.object, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/still-ending"} })
	if err := apiServer.Delete(t.Context(), pod.object, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	other := namespace(t, nil) // a later change is done, so the earlier one is done, too
	create(t, hashing(other, "orders", "sha3-512"))
	expectFile(t, other, fileOf("orders", "sha3-512"))
	expectFile(t, ns, "[]\n") // its broker may still run
	update(t, pod.object, func(p *corev1.Pod) { p.Finalizers = nil })
	expectNoFile(t, ns)
}

func TestWithoutBrokersTheLastProfileTakesTheFileAlong(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	profile := hashing(ns, "orders", "sha3-512")
	create(t, profile)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	if err := apiServer.Delete(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	expectNoFile(t, ns)
}

func TestSomeNamespacesNeverGetProfiles(t *testing.T) {
	start(t)
	create(t, clusterHashing("all", "sha-384", nil))
	ns := namespace(t, nil)
	expectFile(t, ns, fileOf("all", "sha-384"))
	for _, excluded := range []string{"kube-system", "kube-node-lease", operatorNamespace} {
		profile := hashing(excluded, "orders", "sha3-512")
		create(t, profile)
		t.Cleanup(func() {
			if err := apiServer.Delete(context.Background(), profile); err != nil {
				t.Error(err)
			}
		})
		expectStatus(t, profile, has{accepted: "False NamespaceExcluded", propagated: "False NotAccepted"})
		expectNoFile(t, excluded)
	}
}

func TestANamespaceThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	create(t, hashing(ns, "orders", "sha3-512"))
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	if err := apiServer.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		t.Fatal(err)
	}
	if err := apiServer.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}}); err != nil {
		t.Fatal(err)
	}
	after := namespace(t, nil) // a later change is done, so the earlier one is done, too
	create(t, hashing(after, "orders", "sha3-512"))
	expectFile(t, after, fileOf("orders", "sha3-512"))
	expectNoFile(t, ns)
}
