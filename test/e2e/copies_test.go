// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// kubectl debug leaves the annotations out of a copy, and lets its containers see the processes of each other.
func TestACopyOfAnInjectedPodForDebuggingHasABroker(t *testing.T) {
	t.Parallel()
	for sentence, test := range map[string]struct {
		labels map[string]string
		// refused is the message with which kubectl debug fails without further arguments. It is empty if kubectl debug makes the copy.
		refused string
	}{
		"in a namespace without the label": {},
		"in a namespace with the label": {
			labels:  map[string]string{contract.InjectionLabel: contract.InjectionEnabled},
			refused: "in a copy of an injected pod, keep the annotations (kubectl debug --keep-annotations)",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t, test.labels)
			profile := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}, Spec: hashing("Default", "sha-256")}
			profile.Spec.Callers = &v1alpha1.Callers{Containers: []string{"app"}}
			must(t, shared.client.Create(t.Context(), profile))
			pod := createPod(t, appPod(namespace, inject("true"), nil))
			expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))

			debug := func(name string, more ...string) (string, error) {
				return kubectl(t, "", slices.Concat([]string{
					"debug", pod.Name, "--namespace", namespace, "--copy-to", name, "--container", "debugger", "--image", shared.Images.Image("broker"),
					"--image-pull-policy=Never", "--attach=false"}, more, []string{"--", "/broker", "version"})...)
			}
			said, err := debug("copy")
			switch {
			case test.refused == "":
				must(t, err)
				expectSharedIdentity(t, namespace, "copy")
			case err == nil || !strings.Contains(said+err.Error(), test.refused):
				t.Errorf("kubectl debug said %q (%v), expected %q", said, err, test.refused)
			}

			_, err = debug("kept", "--keep-annotations")
			must(t, err)
			kept := expectSharedIdentity(t, namespace, "kept")
			if args := kept.Spec.InitContainers[0].Args; !slices.Contains(args, "--shared-identity") {
				t.Errorf("found the arguments %q of a copy that keeps its annotations, expected --shared-identity among them", args)
			}
		})
	}
}

// expectSharedIdentity waits until the application of a copy makes calls. It expects that the broker does not recognise any caller
// as the caller that the profile names.
func expectSharedIdentity(t testing.TB, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, patience, "the application in "+name+" runs", func() (err error) {
		pod, err = shared.clientset.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == "app" && s.State.Running != nil }) {
			err = fmt.Errorf("it is %s: %s", pod.Status.Phase, workload.DescribeContainers(pod))
		}
		return err
	})
	expectAllRefused(t, awaitErrors(t, pod, statsPort), "share their processes and can call for each other")
	return pod
}
