// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// put puts the broker into a pod. A pod with the operator's stamp may have a broker already: from
// another replica, perhaps of another version, or because it is a copy of an injected pod. Then
// put replaces the container, the volumes and the mounts by those of a new pod. So nobody can
// write a stamp and a container by hand to get another broker than the operator's. A pod without
// the stamp that uses a reserved name is refused.
func (r *rendering) put(pod *corev1.Pod) (warnings []string, err error) {
	var problems problems
	problems.reservedContainers(pod)
	if _, stamped := pod.Annotations[contract.InjectedAnnotation]; !stamped {
		problems.reservedNames(pod)
	}
	at := slices.IndexFunc(pod.Spec.InitContainers, isBroker)
	var found corev1.Container
	if at >= 0 {
		found = pod.Spec.InitContainers[at]
	}
	formerCallers := callersOf(&found)
	receivers := r.receivers(pod, setOf(formerCallers))
	r.putSockets(pod, at, setOf(receivers), &problems)
	r.callers = slices.Concat(receivers, r.options.awaited)
	r.options.checkArguments(r.callers, &problems)
	if err := problems.refusal(); err != nil {
		return nil, err
	}
	if sameNames(formerCallers, r.callers) {
		r.callers = formerCallers // another webhook may have moved containers
	}
	if r.formerPort = int32(contract.StatusPort(found.Args)); r.formerPort == r.template.StatusPort {
		r.statusPort = !pod.Spec.HostNetwork
	} else {
		r.statusPort, warnings = r.statusPortFree(pod)
	}
	if !slices.Contains(found.Args, contract.Switch(contract.SharedIdentityFlag)) {
		warnings = append(warnings, sharedProcesses(pod)...)
	}
	if at < 0 && isGuaranteed(pod) {
		equal, more := r.options.guarantee(r.template.Resources)
		r.template.Resources, warnings = equal, append(warnings, more...)
	}
	if at < 0 {
		pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, r.container())
	} else {
		r.execProbe = isRedirected(found)
		pod.Spec.InitContainers[at] = r.reinjected(found)
	}
	pod.Spec.Volumes = r.putVolumes(pod.Spec.Volumes)
	return warnings, nil
}

// receivers returns the containers that get a socket, in the order of the pod. These are the
// containers that the annotation names. Without the annotation, these are the containers that
// have a socket or that are callers of the broker in the pod. If there are none either, all
// containers get a socket.
func (r *rendering) receivers(pod *corev1.Pod, formerCallers map[string]bool) []string {
	var all, before []string
	each(pod, func(_ string, container *corev1.Container) {
		if isBroker(*container) {
			return
		}
		all = append(all, container.Name)
		if slices.ContainsFunc(container.VolumeMounts, isSocket) || formerCallers[container.Name] {
			before = append(before, container.Name)
		}
	})
	if len(before) > 0 && r.options.containers == nil {
		return before
	}
	return slices.DeleteFunc(all, func(name string) bool { return !r.options.wants(name) })
}

// putSockets mounts the sockets in the containers that receive one, and removes mounts of the
// broker's volumes from the others. at is the index of the broker among the init containers. It
// is negative if the pod has no broker yet.
func (r *rendering) putSockets(pod *corev1.Pod, at int, receives map[string]bool, found *problems) {
	broker := fmt.Sprintf("spec.initContainers[%d]", at)
	isBehind, readOnly := at < 0, readOnlyVolumes(pod)
	each(pod, func(place string, container *corev1.Container) {
		switch {
		case place == broker:
			isBehind = true
		case !receives[container.Name]:
			withdrawSocket(container)
		case !isBehind && r.options.containers != nil:
			found.add("%s: found the container %s, which the annotation %s names, before the broker; expected it after the container %q, or not in the annotation",
				place, textlimits.Quoted(container.Name), contract.ContainersAnnotation, contract.BrokerContainer)
		case !isBehind:
			found.add("%s: found the broker's socket in container %s, which ends before the broker starts; expected it after the container %q",
				place, textlimits.Quoted(container.Name), contract.BrokerContainer)
		default:
			found.socketConflicts(readOnly, place, container, r.options.socketDir)
			r.putSocket(container)
		}
	})
}

// putSocket mounts the socket in a container, and replaces an earlier mount of it. It sets the
// environment variable with the path, unless the owner has set it.
func (r *rendering) putSocket(container *corev1.Container) {
	mount := r.mount(container.Name)
	variable := corev1.EnvVar{Name: contract.SocketVariable, Value: path.Join(r.options.socketDir, contract.SocketFile)}
	at := slices.IndexFunc(container.VolumeMounts, isSocket)
	if at < 0 {
		container.VolumeMounts = append(container.VolumeMounts, mount)
	} else {
		if former := slices.Index(container.Env, variableFor(container.VolumeMounts[at])); former >= 0 {
			container.Env[former] = variable
		}
		container.VolumeMounts[at] = mount
	}
	first := true
	container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
		if first && isSocket(mount) {
			first = false
			return false
		}
		return contract.IsReservedVolume(mount.Name)
	})
	if !slices.ContainsFunc(container.Env, func(found corev1.EnvVar) bool { return found.Name == contract.SocketVariable }) {
		container.Env = append(container.Env, variable)
	}
}

// withdrawSocket removes from a container the mounts and the variable of a broker.
func withdrawSocket(container *corev1.Container) {
	for _, mount := range container.VolumeMounts {
		if isSocket(mount) {
			former := variableFor(mount)
			container.Env = slices.DeleteFunc(container.Env, func(variable corev1.EnvVar) bool { return variable == former })
		}
	}
	container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool { return contract.IsReservedVolume(mount.Name) })
}

func isSocket(mount corev1.VolumeMount) bool { return mount.Name == contract.SocketVolume }

// variableFor returns the environment variable that the operator adds with a mount of a
// socket.
func variableFor(mount corev1.VolumeMount) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.SocketVariable, Value: path.Join(mount.MountPath, contract.SocketFile)}
}

// putVolumes returns the pod's volumes and the broker's volumes. A volume of the broker replaces
// a volume of the same name in its place.
func (r *rendering) putVolumes(found []corev1.Volume) (volumes []corev1.Volume) {
	socket, profiles := r.volumes()
	own := append([]corev1.Volume{socket, profiles}, r.secretVolumes()...)
	if r.template.KeyGateway != "" {
		own = append(own, keyGatewayVolume(r.template.BrokerCertificates))
	}
	for _, volume := range found {
		if at := slices.IndexFunc(own, func(wanted corev1.Volume) bool { return wanted.Name == volume.Name }); at >= 0 {
			volumes, own = append(volumes, own[at]), slices.Delete(own, at, at+1)
		} else if !contract.IsReservedVolume(volume.Name) {
			volumes = append(volumes, volume)
		}
	}
	return append(volumes, own...)
}

// callersOf returns the callers in a broker's arguments.
func callersOf(container *corev1.Container) []string {
	names, _ := contract.ArgumentOf(container.Args, contract.CallersFlag)
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// sameNames reports whether both lists have the same names in any order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
