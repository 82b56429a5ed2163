// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// reservedAdvice follows the last sentence about a reserved name. A copy of an injected pod has
// the broker of its original. If the copy has the annotations too, Inject replaces that broker by
// a current one.
const reservedAdvice = "the name is reserved for the broker that the operator adds: rename yours; or, in a copy of an injected pod, " +
	"keep the annotations (kubectl debug --keep-annotations)"

// reservedNames finds the reserved names in a pod without the stamp. It finds mounts without
// their volume as well, because once Inject adds the volume, the container would mount a volume
// of the broker.
func (p *problems) reservedNames(pod *corev1.Pod) {
	for i := range pod.Spec.InitContainers {
		if isBroker(pod.Spec.InitContainers[i]) {
			p.addReserved("spec.initContainers[%d].name: found %q without the annotation %s", i, contract.BrokerContainer, contract.InjectedAnnotation)
		}
	}
	for i, volume := range pod.Spec.Volumes {
		if contract.IsReservedVolume(volume.Name) {
			p.addReserved("spec.volumes[%d].name: found %s without the annotation %s", i, textlimits.Quoted(volume.Name), contract.InjectedAnnotation)
		}
	}
	each(pod, func(place string, container *corev1.Container) {
		for i := range container.VolumeMounts {
			if mount := &container.VolumeMounts[i]; contract.IsReservedVolume(mount.Name) {
				p.addReserved("%s.volumeMounts[%d].name: found %s without the annotation %s", place, i, textlimits.Quoted(mount.Name), contract.InjectedAnnotation)
			}
		}
	})
}

// reservedContainers finds containers, other than init containers, with the
// broker's name, which no version of the operator makes.
func (p *problems) reservedContainers(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == contract.BrokerContainer {
			p.addReserved("spec.containers[%d].name: found %q, expected another name", i, contract.BrokerContainer)
		}
	}
}

// socketConflicts finds mounts of a container that prevent the mount of the socket at socketDir.
// A volume above socketDir is allowed if the mount point can be made in it, or in another volume
// between the two. readOnly are the volumes of the pod in which it cannot be made.
func (p *problems) socketConflicts(readOnly map[string]bool, place string, container *corev1.Container, socketDir string) {
	nearest := nearestAbove(container.VolumeMounts, socketDir)
	for i := range container.VolumeMounts {
		mount := &container.VolumeMounts[i]
		if contract.IsReservedVolume(mount.Name) {
			continue
		}
		switch at := inContainer(mount.MountPath); {
		case within(socketDir, at):
			p.add("%s.volumeMounts[%d].mountPath: found %s in container %s, where the broker's socket has to be; expected a path outside of %s",
				place, i, textlimits.Quoted(mount.MountPath), textlimits.Quoted(container.Name), socketDir)
		case within(at, socketDir) && mount.MountPropagation != nil && *mount.MountPropagation == corev1.MountPropagationBidirectional:
			p.add("%s.volumeMounts[%d].mountPropagation: found Bidirectional for the volume %s at %s in container %s, which takes the mount of the broker's socket to the node, where it keeps the pod from being removed; expected None or HostToContainer, or another directory for the socket in the annotation %s",
				place, i, textlimits.Quoted(mount.Name), textlimits.Quoted(mount.MountPath), textlimits.Quoted(container.Name), contract.SocketPathAnnotation)
		case i == nearest && (mount.ReadOnly || readOnly[mount.Name]):
			p.add("%s.volumeMounts[%d]: found the read-only volume %s at %s in container %s, where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example",
				place, i, textlimits.Quoted(mount.Name), textlimits.Quoted(mount.MountPath), textlimits.Quoted(container.Name))
		}
	}
	for i, device := range container.VolumeDevices {
		if within(socketDir, inContainer(device.DevicePath)) {
			p.add("%s.volumeDevices[%d].devicePath: found %s in container %s, where the broker's socket has to be; expected a path outside of %s",
				place, i, textlimits.Quoted(device.DevicePath), textlimits.Quoted(container.Name), socketDir)
		}
	}
}

// nearestAbove returns the index of the mount, other than the broker's, in which a directory is. It
// is negative if the directory is in the root file system.
func nearestAbove(mounts []corev1.VolumeMount, directory string) int {
	nearest, length := -1, 0
	for i := range mounts {
		if at := inContainer(mounts[i].MountPath); !contract.IsReservedVolume(mounts[i].Name) && within(at, directory) && len(at) > length {
			nearest, length = i, len(at)
		}
	}
	return nearest
}

// inContainer returns the absolute path of a mount. The API server accepts a relative
// path, which the kubelet resolves from the container's root.
func inContainer(mountPath string) string { return path.Clean("/" + mountPath) }

// within reports whether a clean path is the directory or inside it.
func within(directory, clean string) bool {
	return clean == directory || strings.HasPrefix(clean, strings.TrimSuffix(directory, "/")+"/")
}

// readOnlyVolumes returns the names of the volumes that the kubelet always mounts
// read-only: by their type, or because their field readOnly says so.
func readOnlyVolumes(pod *corev1.Pod) map[string]bool {
	found := map[string]bool{}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.ConfigMap != nil || volume.Secret != nil || volume.DownwardAPI != nil || volume.Projected != nil ||
			volume.Image != nil ||
			volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly ||
			volume.CSI != nil && volume.CSI.ReadOnly != nil && *volume.CSI.ReadOnly ||
			volume.NFS != nil && volume.NFS.ReadOnly ||
			volume.ISCSI != nil && volume.ISCSI.ReadOnly ||
			volume.FC != nil && volume.FC.ReadOnly {
			found[volume.Name] = true
		}
	}
	return found
}
