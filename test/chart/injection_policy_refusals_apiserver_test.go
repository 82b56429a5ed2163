// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// refusedAnnotations is the table of annotations that the webhook refuses.
const refusedAnnotations = "../../webhook/injection/testdata/refused-annotations.yaml"

// expectRefusal creates a pod as a dry run, and expects the policy that refuses to
// say something. The API server's own validation does not count, because its message does not name the annotation.
func expectRefusal(t *testing.T, admin client.Client, pod *corev1.Pod, want string) {
	t.Helper()
	const policy = "ValidatingAdmissionPolicy '" + release + "-injected-"
	err := admin.Create(t.Context(), pod, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), policy) || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected a refusal by %s…' that says %s", err, policy, want)
	}
}

// podThatAsks returns a pod that asks for a broker, with the given annotations of the operator.
func podThatAsks(namespace string, annotations ...string) *corev1.Pod {
	pod := plainPod(namespace, "pod")
	pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[contract.AnnotationPrefix+annotations[i]] = annotations[i+1]
	}
	return pod
}

func policyRefusesWithASentence(t *testing.T, admin client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, admin, namespace)
	asks := func(annotations ...string) *corev1.Pod { return podThatAsks(namespace.Name, annotations...) }

	t.Run("every annotation that the webhook refuses, in the same words", func(t *testing.T) {
		document, err := os.ReadFile(refusedAnnotations)
		if err != nil {
			t.Fatal(err)
		}
		var tests []struct {
			Case, Annotation, Value, Sentence string
			Pod                               map[string]any
		}
		if err := yaml.UnmarshalStrict(document, &tests); err != nil {
			t.Fatal(err)
		}
		if len(tests) == 0 {
			t.Fatal("found no refused annotations")
		}
		for _, test := range tests {
			t.Run(test.Case, func(t *testing.T) {
				want := "metadata.annotations[cryptobroker.io/" + test.Annotation + "]: " + test.Sentence
				expectRefusal(t, admin, patched(t, asks(test.Annotation, test.Value), test.Pod), want)
			})
		}
	})

	long := strings.Repeat("profile,", 30_000) + "profile"
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		change func(*corev1.Pod)
		want   string
	}{
		"another value than true or false": {pod: asks("inject", "yes"), want: `found "yes", expected "true" to get a broker or "false" to get none`},
		"a misspelt annotation":            {pod: asks("profile", "Default"), want: "metadata.annotations[cryptobroker.io/profile]: found an unknown annotation; expected one of cryptobroker.io/inject, profiles, "},
		"a container that is not there":    {pod: asks("containers", "app,other"), want: `found "app,other", expected names of containers of the pod`},
		"a list of profiles that is as long as annotations may be": {
			pod: asks("profiles", long), want: fmt.Sprintf("found %q… (%d bytes), expected names of profiles", long[:100], len(long)),
		},
		"a list of containers that is as long as annotations may be": {
			pod: asks("containers", long), want: fmt.Sprintf("found %q… (%d bytes), expected names of containers", long[:100], len(long)),
		},
		"a list of keys that is as long as annotations may be": {
			pod: asks("keys", long), want: fmt.Sprintf("found %q… (%d bytes), expected names of Secrets", long[:100], len(long)),
		},
		"an app with the broker's name": {pod: asks(), change: func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = contract.BrokerContainer }, want: `found the name "crypto-broker", expected another name`},
		"a broker that it brings itself": {pod: asks(), change: func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, Image: "example.com/evil:1"}}
		}, want: `found arguments of the container "crypto-broker" that are not the ones that are added`},
		"a volume of the broker's that it brings itself": {pod: asks(), change: func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "crypto-broker-keys-1", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}, want: "found a volume of the broker that is not the one that is added to the pod"},
		"a mount above the socket that goes back to the node": {pod: asks(), change: func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/tmp", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)}}
		}, want: "found a mount with mountPropagation Bidirectional above the broker's socket"},
		"a mount of the broker's profiles": {pod: asks(), change: func(pod *corev1.Pod) {
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: contract.ProfilesVolume, MountPath: "/profiles"}}
		}, want: "found a mount of a volume of the broker"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.pod)
			}
			expectRefusal(t, admin, test.pod, test.want)
		})
	}

	for name, pod := range map[string]*corev1.Pod{
		"a pod that did not ask may have what names it likes": func() *corev1.Pod {
			pod := plainPod(namespace.Name, "pod")
			pod.Spec.Containers[0].Name = contract.BrokerContainer
			return pod
		}(),
		"each of twenty containers may list a hundred profiles": func() *corev1.Pod {
			pod := asks("profiles", numberedProfiles(100))
			pod.Spec.Containers = nil
			for i := range 20 {
				name := fmt.Sprintf("app-%d", i)
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "example.com/app:1"})
				pod.Annotations[contract.ContainerProfilesPrefix+name] = numberedProfiles(100)
			}
			return pod
		}(),
		"amounts may have a fraction that is whole in smaller units": asks("cpu-limit", "1.5", "cpu-request", "0.007", "memory-limit", "1.5Gi", "memory-request", "0.1G"),
		"a path may have letters of any alphabet and spaces":         asks("socket-path", "/run/ключ é/a b"),
		"profiles may have letters of any alphabet and spaces":       asks("profiles", "Größe 1, ключ"),
		"a port may have zeros in front":                             asks("metrics-port", "09999"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// patched returns the pod with a strategic merge patch applied.
func patched(t *testing.T, pod *corev1.Pod, patch map[string]any) *corev1.Pod {
	t.Helper()
	document, err := strategicpatch.StrategicMergePatch(mustJSON(t, pod), mustJSON(t, patch), corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	after := &corev1.Pod{}
	if err := json.Unmarshal(document, after); err != nil {
		t.Fatal(err)
	}
	return after
}

// numberedProfiles returns a list of profile names with the maximum length.
func numberedProfiles(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%064d", i))
	}
	return strings.Join(names, ",")
}
