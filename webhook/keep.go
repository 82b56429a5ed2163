// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// keep checks that the broker in a pod, init container number broker, is what
// add made, and brings up to date what may have changed since: the snapshot's
// place in the volume of the profiles, a startup probe that a mesh has
// redirected, the sockets of containers that were awaited, and the variable of the
// socket.
func (r *rendering) keep(pod *corev1.Pod, broker int) (warnings []string, err error) {
	problems := reservedContainers(pod)
	found := &pod.Spec.InitContainers[broker]
	place := fmt.Sprintf("spec.initContainers[%d]", broker)
	r.callers = callersOf(found)
	problems = append(problems, r.addLate(pod, place)...)
	holders, misplaced := r.holders(pod, place)
	problems = append(problems, misplaced...)

	awaited := slices.DeleteFunc(slices.Clone(r.wishes.awaited), func(name string) bool { return !slices.Contains(r.callers, name) })
	if !sameNames(r.callers, append(awaited, holders...)) {
		problems = append(problems, fmt.Sprintf("%s.args: found a container %q for the callers %s, but the containers that mount the volume %s are %s; %s",
			place, found.Name, list(r.callers), v1alpha1.SocketVolume, list(holders), wayOut))
	}
	if r.wishes.containers != nil && !sameNames(r.callers, r.wishes.containers) {
		problems = append(problems, fmt.Sprintf("%s.args: found a container %q for the callers %s, but the annotation %s names %s; %s",
			place, found.Name, list(r.callers), v1alpha1.ContainersAnnotation, list(r.wishes.containers), wayOut))
	}
	r.statusPort = !pod.Spec.HostNetwork && slices.ContainsFunc(found.Args, isStatusAddress)
	r.execProbe = r.statusPort && found.StartupProbe != nil && (found.StartupProbe.Exec != nil || isRedirected(found.StartupProbe, r.startupProbe()))
	if len(r.callers) > 0 {
		r.keepSeal(found)
		if different := differences(*found, r.container()); len(different) > 0 {
			problems = append(problems, fmt.Sprintf("%s: found a container %q whose %s differs from what the operator makes; %s",
				place, found.Name, strings.Join(different, ", "), wayOut))
		}
	}
	problems = append(problems, r.keepVolumes(pod)...)
	if len(problems) > 0 {
		return nil, &Refusal{Problems: problems}
	}
	found.StartupProbe = r.startupProbe()
	each(pod, func(_ string, container *corev1.Container) {
		if slices.Contains(holders, container.Name) {
			r.addVariable(container)
		}
	})
	return nil, nil
}

// addLate gives their sockets to containers that were awaited when the broker was
// added. brokerPlace is where it is.
func (r *rendering) addLate(pod *corev1.Pod, brokerPlace string) (problems []string) {
	passed := false
	each(pod, func(place string, container *corev1.Container) {
		isNamed := slices.Contains(r.wishes.containers, container.Name) && slices.Contains(r.callers, container.Name)
		hasMount := slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.Name == v1alpha1.SocketVolume })
		switch {
		case place == brokerPlace:
			passed = true
		case !isNamed || hasMount:
		case !passed:
			problems = append(problems, fmt.Sprintf("%s: found the container %q, which the annotation %s names, in front of the broker; expected it behind the container %q, or not in the annotation",
				place, container.Name, v1alpha1.ContainersAnnotation, v1alpha1.BrokerContainer))
		default:
			conflicts := socketConflicts(pod, place, container, r.wishes.socketDir)
			if problems = append(problems, conflicts...); len(conflicts) == 0 {
				container.VolumeMounts = append(container.VolumeMounts, r.mount(container.Name))
			}
		}
	})
	return problems
}

// holders returns the containers that mount their socket, and problems with
// those that mount a volume of the broker in another way. brokerPlace is where the
// broker is.
func (r *rendering) holders(pod *corev1.Pod, brokerPlace string) (names []string, problems []string) {
	passed := false
	each(pod, func(place string, container *corev1.Container) {
		if place == brokerPlace {
			passed = true
			return
		}
		for i, mount := range container.VolumeMounts {
			switch {
			case !isReservedVolume(mount.Name):
			case !equality.Semantic.DeepEqual(mount, r.mount(container.Name)):
				problems = append(problems, fmt.Sprintf("%s.volumeMounts[%d]: found a mount of %q in container %q that the operator does not make; %s",
					place, i, mount.Name, container.Name, wayOut))
			case !passed:
				problems = append(problems, fmt.Sprintf("%s.volumeMounts[%d]: found the broker's socket in container %q, which ends before the broker starts; expected it behind the container %q",
					place, i, container.Name, v1alpha1.BrokerContainer))
			default:
				names = append(names, container.Name)
			}
		}
	})
	return names, problems
}

// keepVolumes checks the broker's volumes. The profiles may have the snapshot
// among their sources or not, whatever is right now: the other form was right
// when the namespace's profiles were others.
func (r *rendering) keepVolumes(pod *corev1.Pod) (problems []string) {
	socket, profiles := r.volumes()
	other := *r
	other.snapshot = !r.snapshot
	_, otherProfiles := other.volumes()
	wanted := [][]corev1.Volume{{socket}, {profiles, otherProfiles}}
	for _, volume := range r.keyVolumes() {
		wanted = append(wanted, []corev1.Volume{volume})
	}
	known := map[string]bool{}
	for _, want := range wanted {
		known[want[0].Name] = true
	}
	for i, volume := range pod.Spec.Volumes {
		if isReservedVolume(volume.Name) && !known[volume.Name] {
			problems = append(problems, fmt.Sprintf("spec.volumes[%d]: found a volume %q that the operator does not make; %s", i, volume.Name, wayOut))
		}
	}
	for _, want := range wanted {
		name := want[0].Name
		i := slices.IndexFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == name })
		switch {
		case i < 0:
			problems = append(problems, fmt.Sprintf("spec.volumes: found no volume %q for the container %q; %s", name, v1alpha1.BrokerContainer, wayOut))
		case !slices.ContainsFunc(want, func(volume corev1.Volume) bool {
			return equality.Semantic.DeepEqual(volume, pod.Spec.Volumes[i])
		}):
			problems = append(problems, fmt.Sprintf("spec.volumes[%d]: found a volume %q that differs from what the operator makes; %s", i, name, wayOut))
		default:
			pod.Spec.Volumes[i] = want[0]
		}
	}
	return problems
}

// callersOf reads back the containers that a broker was made for.
func callersOf(container *corev1.Container) []string {
	for _, argument := range container.Args {
		if names, ok := strings.CutPrefix(argument, callersFlag); ok && names != "" {
			return strings.Split(names, ",")
		}
	}
	return nil
}

func isStatusAddress(argument string) bool { return strings.HasPrefix(argument, statusAddressFlag) }

// sameNames says whether both hold the same names, at least one. Their order
// may differ: another webhook may have moved containers.
func sameNames(a, b []string) bool {
	return len(a) > 0 && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// list names containers in a sentence.
func list(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, ", ")
}
