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
	var problems problems
	found := &pod.Spec.InitContainers[broker]
	place := fmt.Sprintf("spec.initContainers[%d]", broker)
	r.callers = callersOf(found)
	if r.wishes.checkArguments(r.callers, &problems); !problems.none() {
		return nil, problems.refusal()
	}
	problems.reservedContainers(pod)
	r.addLate(pod, place, &problems)
	holders := r.holders(pod, place, &problems)

	awaited := slices.DeleteFunc(slices.Clone(r.wishes.awaited), func(name string) bool { return !slices.Contains(r.callers, name) })
	if !sameNames(r.callers, append(awaited, holders...)) {
		problems.addReserved("%s.args: found a container %q for the callers %s, but the containers that mount the volume %s are %s",
			place, found.Name, names(r.callers), v1alpha1.SocketVolume, names(holders))
	}
	if r.wishes.containers != nil && !sameNames(r.callers, r.wishes.containers) {
		problems.addReserved("%s.args: found a container %q for the callers %s, but the annotation %s names %s",
			place, found.Name, names(r.callers), v1alpha1.ContainersAnnotation, names(r.wishes.containers))
	}
	r.statusPort = !pod.Spec.HostNetwork && slices.ContainsFunc(found.Args, isStatusAddress)
	r.execProbe = r.statusPort && found.StartupProbe != nil && (found.StartupProbe.Exec != nil || isRedirected(found.StartupProbe, r.startupProbe()))
	if len(r.callers) > 0 {
		r.keepSeal(found)
		if different := differences(*found, r.container()); len(different) > 0 {
			problems.addReserved("%s: found a container %q whose %s differs from what the operator makes",
				place, found.Name, strings.Join(different, ", "))
		}
	}
	r.keepVolumes(pod, &problems)
	if err := problems.refusal(); err != nil {
		return nil, err
	}
	found.StartupProbe = r.startupProbe()
	holds := setOf(holders)
	each(pod, func(_ string, container *corev1.Container) {
		if holds[container.Name] {
			r.addVariable(container)
		}
	})
	return nil, nil
}

// addLate gives their sockets to containers that were awaited when the broker was
// added. brokerPlace is where it is.
func (r *rendering) addLate(pod *corev1.Pod, brokerPlace string, found *problems) {
	passed := false
	calls, named, readOnly := setOf(r.callers), setOf(r.wishes.containers), readOnlyVolumes(pod)
	each(pod, func(place string, container *corev1.Container) {
		isNamed := named[container.Name] && calls[container.Name]
		hasMount := slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.Name == v1alpha1.SocketVolume })
		switch {
		case place == brokerPlace:
			passed = true
		case !isNamed || hasMount:
		case !passed:
			found.add("%s: found the container %s, which the annotation %s names, in front of the broker; expected it behind the container %q, or not in the annotation",
				place, quoted(container.Name), v1alpha1.ContainersAnnotation, v1alpha1.BrokerContainer)
		default:
			if found.socketConflicts(readOnly, place, container, r.wishes.socketDir) {
				container.VolumeMounts = append(container.VolumeMounts, r.mount(container.Name))
			}
		}
	})
}

// holders returns the containers that mount their socket, and problems with
// those that mount a volume of the broker in another way. brokerPlace is where the
// broker is.
func (r *rendering) holders(pod *corev1.Pod, brokerPlace string, found *problems) (names []string) {
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
				found.addReserved("%s.volumeMounts[%d]: found a mount of %s in container %s that the operator does not make",
					place, i, quoted(mount.Name), quoted(container.Name))
			case !passed:
				found.add("%s.volumeMounts[%d]: found the broker's socket in container %s, which ends before the broker starts; expected it behind the container %q",
					place, i, quoted(container.Name), v1alpha1.BrokerContainer)
			default:
				names = append(names, container.Name)
			}
		}
	})
	return names
}

// keepVolumes checks the broker's volumes. The profiles may have the snapshot
// among their sources or not, whatever is right now: the other form was right
// when the namespace's profiles were others.
func (r *rendering) keepVolumes(pod *corev1.Pod, found *problems) {
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
			found.addReserved("spec.volumes[%d]: found a volume %s that the operator does not make", i, quoted(volume.Name))
		}
	}
	for _, want := range wanted {
		name := want[0].Name
		i := slices.IndexFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == name })
		switch {
		case i < 0:
			found.addReserved("spec.volumes: found no volume %q for the container %q", name, v1alpha1.BrokerContainer)
		case !slices.ContainsFunc(want, func(volume corev1.Volume) bool {
			return equality.Semantic.DeepEqual(volume, pod.Spec.Volumes[i])
		}):
			found.addReserved("spec.volumes[%d]: found a volume %q that differs from what the operator makes", i, name)
		default:
			pod.Spec.Volumes[i] = want[0]
		}
	}
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
