// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// imageGroup is a group to which the image adds the user of the application. podGroup is a group to which the pod adds the user.
const imageGroup, podGroup = 4711, 4712

func TestAPodWithTheStrictPolicyForGroupsReachesItsBrokerWithoutTheGroupsOfItsImage(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "image.tar")
	image := shared.Images.Image("demo-app") + "-with-groups"
	writeImage(t, archive, image, "demo-app", map[string]string{
		"etc/passwd": "app:x:12345:12345::/:\n",
		"etc/group":  "app:x:12345:\nwheel:x:4711:app\n",
	})
	must(t, shared.cluster.Load(t.Context(), os.Stderr, archive))
	namespace := newNamespace(t, restricted)
	createProfile(t, namespace, "sha-384")
	for policy, groups := range map[corev1.SupplementalGroupsPolicy][]int64{
		corev1.SupplementalGroupsPolicyStrict: {podGroup, socketGroup},
		// The image has to name a group, or the test would prove nothing.
		corev1.SupplementalGroupsPolicyMerge: {imageGroup, podGroup, socketGroup},
	} {
		t.Run(string(policy), func(t *testing.T) {
			pod := appPod(namespace, inject("true"), nil)
			pod.Spec.Containers[0].Image = image
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{
				SupplementalGroups: []int64{podGroup}, SupplementalGroupsPolicy: ptr.To(policy)}
			pod = createPod(t, pod)
			expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))
			expectGroups(t, processOf(t, pod, "app"), groups...)
		})
	}
}
