// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// patch returns the JSON patch (RFC 6902) that makes of before what Inject made
// of it.
//
// It is written out by place, and not made by comparing two documents, for the
// sake of fields that a newer API server knows and this program does not: they
// are in the document that the patch is applied to and in neither of the pods
// here. A comparison of documents would remove them, and one that meets an
// inserted container would move them to another.
func patch(before, after *corev1.Pod) []jsonpatch.Operation {
	var p operations
	p.annotations(before.Annotations, after.Annotations)
	p.securityContext(before.Spec.SecurityContext, after.Spec.SecurityContext)
	p.volumes(before.Spec.Volumes, after.Spec.Volumes)
	insert(&p, "/spec/imagePullSecrets", len(before.Spec.ImagePullSecrets), "-", after.Spec.ImagePullSecrets[len(before.Spec.ImagePullSecrets):])
	// Mounts go before the broker's container, which changes the numbers of
	// the init containers behind it.
	added := len(after.Spec.InitContainers) - len(before.Spec.InitContainers)
	for i, container := range before.Spec.InitContainers {
		p.container(fmt.Sprintf("/spec/initContainers/%d", i), container, after.Spec.InitContainers[i+added])
	}
	for i, container := range before.Spec.Containers {
		p.container(fmt.Sprintf("/spec/containers/%d", i), container, after.Spec.Containers[i])
	}
	if added > 0 {
		insert(&p, "/spec/initContainers", len(before.Spec.InitContainers), "0", after.Spec.InitContainers[:added])
	}
	return p
}

// operations is a patch that is being written.
type operations []jsonpatch.Operation

func (p *operations) add(path string, value any) {
	*p = append(*p, jsonpatch.NewOperation("add", path, value))
}

func (p *operations) replace(path string, value any) {
	*p = append(*p, jsonpatch.NewOperation("replace", path, value))
}

func (p *operations) remove(path string) {
	*p = append(*p, jsonpatch.NewOperation("remove", path, nil))
}

// insert adds items to the list at path, which has length items so far: at
// position, or as a new list if it has none and so may not exist.
func insert[T any](p *operations, path string, length int, position string, items []T) {
	switch {
	case len(items) == 0:
	case length == 0:
		p.add(path, items)
	default:
		for _, item := range items {
			p.add(path+"/"+position, item)
		}
	}
}

func (p *operations) annotations(before, after map[string]string) {
	if before == nil {
		if len(after) > 0 {
			p.add("/metadata/annotations", after)
		}
		return
	}
	// RFC 6901, section 3.
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			p.remove("/metadata/annotations/" + escape.Replace(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if value, found := before[key]; !found || value != after[key] {
			p.add("/metadata/annotations/"+escape.Replace(key), after[key])
		}
	}
}

func (p *operations) securityContext(before, after *corev1.PodSecurityContext) {
	if before == nil {
		if after != nil {
			p.add("/spec/securityContext", after)
		}
		return
	}
	insert(p, "/spec/securityContext/supplementalGroups", len(before.SupplementalGroups), "-",
		after.SupplementalGroups[len(before.SupplementalGroups):])
}

func (p *operations) volumes(before, after []corev1.Volume) {
	for i := range before {
		if !equality.Semantic.DeepEqual(before[i], after[i]) {
			p.replace(fmt.Sprintf("/spec/volumes/%d", i), after[i])
		}
	}
	insert(p, "/spec/volumes", len(before), "-", after[len(before):])
}

// container writes what Inject changes in a container that was there before.
func (p *operations) container(place string, before, after corev1.Container) {
	insert(p, place+"/env", len(before.Env), "-", after.Env[len(before.Env):])
	insert(p, place+"/volumeMounts", len(before.VolumeMounts), "-", after.VolumeMounts[len(before.VolumeMounts):])
	if !slices.Equal(before.Args, after.Args) {
		p.add(place+"/args", after.Args) // replaces those that are there
	}
	if !equality.Semantic.DeepEqual(before.StartupProbe, after.StartupProbe) {
		p.replace(place+"/startupProbe", after.StartupProbe)
	}
}
