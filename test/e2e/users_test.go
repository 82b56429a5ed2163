// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// User namespaces and the policy for supplemental groups have tests of their own.
func TestAContainerConnectsWhoeverItRunsAs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha-384")
	for name, change := range map[string]func(*corev1.PodSpec){
		"root": func(spec *corev1.PodSpec) {
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](0)}
		},
		"root without capabilities": func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](0)}
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
		},
		"a user of a range that a platform assigns": func(spec *corev1.PodSpec) {
			spec.Containers[0].SecurityContext.RunAsUser, spec.Containers[0].SecurityContext.RunAsGroup = ptr.To[int64](1000680000), ptr.To[int64](0)
		},
		"a group that owns its volumes": func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](2000)}
		},
		"a root file system that is read-only": func(spec *corev1.PodSpec) {
			spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem = ptr.To(true)
		},
		"a volume of its own at /tmp": func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := appPod(namespace, inject("true"), nil)
			change(&pod.Spec)
			pod = createPod(t, pod)
			expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 5))
		})
	}
}
