// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// withoutConfigMapPolicy removes the policy that protects the ConfigMaps of profiles, until the test ends.
func withoutConfigMapPolicy(t *testing.T) {
	t.Helper()
	bindings := shared.clientset.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	name := environment.Release + "-profiles-configmap"
	binding, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	t.Cleanup(func() {
		again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: binding.Labels, Annotations: binding.Annotations}, Spec: binding.Spec}
		if _, err := bindings.Create(timeoutContext(t, time.Minute), again, metav1.CreateOptions{}); err != nil {
			t.Errorf("putting the policy's binding back: %v", err)
		}
	})
	must(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// awaitBroker waits until a broker reports the expected digest, revision and reason.
func awaitBroker(t testing.TB, pod *corev1.Pod, expected brokerState) brokerState {
	t.Helper()
	var found brokerState
	eventually(t, patience, fmt.Sprintf("the broker says %s of revision %d", expected.Reason, expected.Revision), func() (err error) {
		if found, err = brokerProfiles(t, pod); err != nil {
			return err
		}
		if found.Digest != expected.Digest || found.Revision != expected.Revision || found.Reason != expected.Reason {
			return fmt.Errorf("it says %+v", found)
		}
		return nil
	})
	return found
}

func TestABrokerTakesNoSetButTheNewestOfItsNamespace(t *testing.T) {
	namespace, other := newNamespace(t, nil), newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	createProfile(t, other, "sha-384")
	elsewhere := profilesConfigMap(t, other).Data
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	// A kubelet starts a container again at once, and after 10 s the second time. So each broker is killed once.
	another := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 2)
	yesterday := profilesConfigMap(t, namespace).Data
	before, err := brokerProfiles(t, pod)
	must(t, err)
	changed := changeHash(t, profile, "sha3-512")
	for _, each := range []*corev1.Pod{pod, another} {
		awaitAlgorithm(t, each, "sha3-512", changed, changeTimeout)
	}
	awaitPropagated(t, profile, 2)
	served, err := brokerProfiles(t, pod)
	must(t, err)
	if before.Revision == 0 || served.Revision <= before.Revision {
		t.Fatalf("found the revisions %d and then %d, expected a higher one", before.Revision, served.Revision)
	}

	// The policy would refuse these changes, and the operator would revert them, so the test removes both first.
	stopOperator(t)
	withoutConfigMapPolicy(t)
	administrator := namespaceAdministrator(t, namespace)
	forged := maps.Clone(profilesConfigMap(t, namespace).Data)
	forged["Profiles.yaml"] = "- Name: Default\n  API:\n    HashData:\n      HashAlg: sha-256\n"
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}
	for _, attempt := range []struct {
		sentence string
		data     map[string]string // nil deletes the ConfigMap
		reason   string
		pod      *corev1.Pod
		kill     bool
	}{
		{"another namespace's set", elsewhere, "SignatureRejected", pod, false},
		{"an edited set", forged, "SignatureRejected", pod, false},
		{"a set without a signature", map[string]string{"Profiles.yaml": forged["Profiles.yaml"]}, "SignatureRejected", pod, false},
		{"yesterday's set, and kill -9", yesterday, "RevisionRejected", pod, true},
		// The first change removed the snapshot from the pod's admission, which is old by now.
		{"no set, and kill -9", nil, "SignatureRejected", another, true},
	} {
		t.Run(attempt.sentence+" is not served", func(t *testing.T) {
			pod := attempt.pod
			// The API server takes a moment to notice that a policy was deleted.
			eventually(t, patience, "the namespace's administrator has done it", func() error {
				found := &corev1.ConfigMap{}
				if err := administrator.Get(t.Context(), key, found); err != nil {
					return err
				}
				if attempt.data == nil {
					return administrator.Delete(t.Context(), found)
				}
				found.Data = attempt.data
				return administrator.Update(t.Context(), found)
			})
			touch(t, administrator, pod)
			expected := served
			expected.Reason = attempt.reason
			awaitBroker(t, pod, expected)
			if attempt.kill {
				restarts := brokerStatus(t, pod).RestartCount
				killBroker(t, pod)
				eventually(t, patience, "the kubelet has started the broker again", func() error {
					found, err := shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
					if err != nil {
						return err
					}
					pod = found
					if brokerStatus(t, pod).RestartCount == restarts || !workload.Ready(pod) {
						return fmt.Errorf("%s", workload.DescribeContainers(pod))
					}
					return nil
				})
				awaitBroker(t, pod, expected)
			}
			after := awaitCalls(t, pod, statsPort, mustStats(t, pod), 20)
			if after.Algorithm != "sha3-512" {
				t.Errorf("found the algorithm %s, expected sha3-512", after.Algorithm)
			}
		})
	}

	startOperator(t)
	eventually(t, patience, "the operator has signed the set with a higher revision", func() error {
		found, err := brokerProfiles(t, pod)
		if err == nil && (found.Digest != served.Digest || found.Revision <= served.Revision || found.Reason != "Loaded") {
			err = fmt.Errorf("the broker says %+v", found)
		}
		return err
	})
	awaitPropagated(t, profile, 2)
}

// touch makes the kubelet look at a pod, by a change that any user with the right to change the pod can make.
func touch(t testing.TB, user client.Client, pod *corev1.Pod) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.org/touched":"%d"}}}`, time.Now().UnixNano())
	must(t, user.Patch(t.Context(), pod.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func TestASigningKeyIsRotatedUnderRunningPods(t *testing.T) {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	old := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 1)
	before, err := brokerProfiles(t, old)
	must(t, err)
	rotateSigningKey(t, old)
	fresh := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 2)
	if found, err := brokerProfiles(t, old); err != nil || found.Revision != before.Revision || found.Since != before.Since {
		t.Errorf("found that the broker of the old pod says %+v (%v), expected no change from %+v", found, err, before)
	}
	changed := changeHash(t, profile, "sha3-512")
	for _, pod := range []*corev1.Pod{old, fresh} {
		awaitAlgorithm(t, pod, "sha3-512", changed, changeTimeout)
	}
	awaitPropagated(t, profile, 2)
}

// rotateSigningKey asks for another signing key, and waits until new pods trust it and no longer the keys of an old pod.
func rotateSigningKey(t testing.TB, old *corev1.Pod) {
	t.Helper()
	_, err := shared.clientset.CoreV1().Secrets(environment.Namespace).Patch(t.Context(), environment.Release+"-signing",
		"application/merge-patch+json", []byte(`{"metadata":{"annotations":{"cryptobroker.io/rotate-signing-key":"now"}}}`), metav1.PatchOptions{})
	must(t, err)
	awaitTrust(t, old.Namespace, "another key", func(keys string) bool { return keys != trustedKeys(t, old) })
}

// awaitTrust waits until new pods of a namespace trust the keys that are expected.
func awaitTrust(t testing.TB, namespace, what string, expected func(keys string) bool) {
	t.Helper()
	eventually(t, patience, "new pods trust "+what, func() error {
		pod := appPod(namespace, inject("true"), nil)
		if err := shared.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err
		}
		if keys := trustedKeys(t, pod); !expected(keys) {
			return fmt.Errorf("they trust %s", keys)
		}
		return nil
	})
}

// trustedKeys returns the keys whose signatures the broker of a pod accepts.
func trustedKeys(t testing.TB, pod *corev1.Pod) string {
	t.Helper()
	for _, argument := range pod.Spec.InitContainers[0].Args {
		if keys, found := strings.CutPrefix(argument, "--trusted-keys="); found {
			return keys
		}
	}
	t.Fatalf("the broker of %s trusts no keys: %q", pod.Name, pod.Spec.InitContainers[0].Args)
	return ""
}

func TestANamespaceAdministratorCannotReadOrMakeTheSigningKey(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	administrator := namespaceAdministrator(t, namespace)
	found := &corev1.Secret{}
	key := client.ObjectKey{Namespace: environment.Namespace, Name: environment.Release + "-signing"}
	if err := administrator.Get(t.Context(), key, found); !apierrors.IsForbidden(err) {
		t.Errorf("reading it: %v, expected that it is forbidden", err)
	}
	found = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	for sentence, err := range map[string]error{
		"making it":    administrator.Create(t.Context(), found),
		"deleting it":  administrator.Delete(t.Context(), found),
		"replacing it": administrator.Update(t.Context(), found),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, expected that it is forbidden", sentence, err)
		}
	}
}
