// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// wayOut ends the sentences about reserved names. A pod that was copied from a
// running one carries the broker of that one, perhaps of an older operator.
const wayOut = "the name is reserved for the broker that the operator adds: rename yours; or, in a copy of an injected pod, " +
	"leave out the container " + v1alpha1.BrokerContainer + ", the volumes " + v1alpha1.SocketVolume + ", " +
	v1alpha1.ProfilesVolume + " and " + v1alpha1.KeysVolumePrefix + "*, and the mounts of them"

func isReservedVolume(name string) bool {
	return name == v1alpha1.SocketVolume || name == v1alpha1.ProfilesVolume || strings.HasPrefix(name, v1alpha1.KeysVolumePrefix)
}

// reservedNames finds the reserved names in a pod that has no broker yet. A
// mount counts without its volume too: adding the volume would make it one of
// the broker's own.
func reservedNames(pod *corev1.Pod) (problems []string) {
	problems = append(problems, reservedContainers(pod)...)
	for i, volume := range pod.Spec.Volumes {
		if isReservedVolume(volume.Name) {
			problems = append(problems, fmt.Sprintf("spec.volumes[%d].name: found %q without the broker's container; %s", i, volume.Name, wayOut))
		}
	}
	each(pod, func(place string, container *corev1.Container) {
		for i, mount := range container.VolumeMounts {
			if isReservedVolume(mount.Name) {
				problems = append(problems, fmt.Sprintf("%s.volumeMounts[%d].name: found %q without the broker's container; %s", place, i, mount.Name, wayOut))
			}
		}
	})
	return problems
}

// reservedContainers finds containers, other than init containers, with the
// broker's name.
func reservedContainers(pod *corev1.Pod) (problems []string) {
	for i, container := range pod.Spec.Containers {
		if container.Name == v1alpha1.BrokerContainer {
			problems = append(problems, fmt.Sprintf("spec.containers[%d].name: found %q, expected another name; %s", i, container.Name, wayOut))
		}
	}
	return problems
}

// socketConflicts finds mounts of a container that leave no place for the
// socket's. A volume mounted above it is fine if the mount point can be made in
// it. socketDir is the directory that the socket is mounted as.
func socketConflicts(pod *corev1.Pod, place string, container *corev1.Container, socketDir string) (problems []string) {
	for i, mount := range container.VolumeMounts {
		if isReservedVolume(mount.Name) {
			continue // reservedNames has the sentence for it
		}
		switch at := inContainer(mount.MountPath); {
		case within(socketDir, at):
			problems = append(problems, fmt.Sprintf("%s.volumeMounts[%d].mountPath: found %q in container %q, where the broker's socket has to be; expected a path outside of %s",
				place, i, mount.MountPath, container.Name, socketDir))
		case within(at, socketDir) && isReadOnly(pod, mount):
			problems = append(problems, fmt.Sprintf("%s.volumeMounts[%d]: found the read-only volume %q at %q in container %q, where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example",
				place, i, mount.Name, mount.MountPath, container.Name))
		}
	}
	for i, device := range container.VolumeDevices {
		if within(socketDir, inContainer(device.DevicePath)) {
			problems = append(problems, fmt.Sprintf("%s.volumeDevices[%d].devicePath: found %q in container %q, where the broker's socket has to be; expected a path outside of %s",
				place, i, device.DevicePath, container.Name, socketDir))
		}
	}
	return problems
}

// inContainer is where something is mounted. The API server takes a path that is
// not absolute, and the kubelet counts it from the container's root.
func inContainer(mountPath string) string { return path.Clean("/" + mountPath) }

// within says whether a clean path is the directory or in it.
func within(directory, clean string) bool {
	return clean == directory || strings.HasPrefix(clean, strings.TrimSuffix(directory, "/")+"/")
}

// isReadOnly says whether the kubelet mounts a volume so that nothing can be
// made in it.
func isReadOnly(pod *corev1.Pod, mount corev1.VolumeMount) bool {
	if mount.ReadOnly {
		return true
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != mount.Name {
			continue
		}
		return volume.ConfigMap != nil || volume.Secret != nil || volume.DownwardAPI != nil || volume.Projected != nil ||
			volume.Image != nil ||
			volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly
	}
	return false
}
