// SPDX-License-Identifier: Apache-2.0

// Package patch writes the JSON patch from a pod to the same pod with its broker, as the
// API server expects it from a webhook.
package patch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Between returns the JSON patch (RFC 6902) from a pod before injection to the pod after it. It
// handles only the changes that the injection makes.
//
// It does not compare two JSON documents, because a newer API server may know fields that this
// program does not know. The patched document has such fields, but neither of the two pods here
// has them. A comparison of documents would remove them, or move them to another container after
// an inserted one.
func Between(before, after *corev1.Pod) []jsonpatch.Operation {
	var p operations
	p.annotations(before.Annotations, after.Annotations)
	p.securityContext(before.Spec.SecurityContext, after.Spec.SecurityContext)
	elements(&p, "/spec/volumes", before.Spec.Volumes, after.Spec.Volumes, nameOfVolume)
	insert(&p, "/spec/imagePullSecrets", len(before.Spec.ImagePullSecrets), "-", after.Spec.ImagePullSecrets[len(before.Spec.ImagePullSecrets):])
	// Patch mounts before the broker's container is inserted, because that changes the numbers of
	// the init containers after it.
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

// insert adds items to the list at path, at position. length is the current number of items. If
// it is 0, the list may not exist, and insert adds a new list.
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

// maxRemoved is the maximum number of elements that are removed from a list one by one. For each
// of them, the API server takes time that grows with the length of the list.
const maxRemoved = 16

// elements writes the changes of a list: elements that are replaced in place, removed, or added
// at the end. Two elements with the same name are the same element.
func elements[T any](p *operations, path string, before, after []T, name func(T) string) {
	var changes operations
	kept, removed := 0, 0
	for _, element := range before {
		place := fmt.Sprintf("%s/%d", path, kept)
		switch {
		case kept == len(after) || name(element) != name(after[kept]):
			changes.remove(place)
			if removed++; removed > maxRemoved {
				p.replace(path, after)
				return
			}
			continue
		case !equality.Semantic.DeepEqual(element, after[kept]):
			changes.replace(place, after[kept])
		}
		kept++
	}
	insert(&changes, path, len(before), "-", after[kept:])
	*p = append(*p, changes...)
}

func nameOfVolume(volume corev1.Volume) string     { return volume.Name }
func nameOfMount(mount corev1.VolumeMount) string  { return mount.Name }
func nameOfVariable(variable corev1.EnvVar) string { return variable.Name }

// container writes the changes of a container that existed before injection: mounts and
// variables, and all fields if it is a broker.
func (p *operations) container(place string, before, after corev1.Container) {
	elements(p, place+"/env", before.Env, after.Env, nameOfVariable)
	elements(p, place+"/volumeMounts", before.VolumeMounts, after.VolumeMounts, nameOfMount)
	if before.Name != contract.BrokerContainer {
		return
	}
	before.Env, before.VolumeMounts = after.Env, after.VolumeMounts
	found, made := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range found.NumField() {
		if equality.Semantic.DeepEqual(found.Field(i).Interface(), made.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(found.Type().Field(i).Tag.Get("json"), ",")
		if made.Field(i).IsZero() {
			p.remove(place + "/" + name)
		} else {
			p.add(place+"/"+name, made.Field(i).Interface()) // add replaces a value that exists
		}
	}
}
