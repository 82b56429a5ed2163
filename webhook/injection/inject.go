// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// Inject returns a copy of the pod with a broker in it, and warnings for its creator. namespace
// is the namespace of the pod, because a new pod need not name it. profiles is the namespace's
// profile file, or nil if there is none yet. The result depends only on the arguments.
//
// If the template has a key gateway, the broker can call it if a profile lists a key of a key
// provider. It also can if there is no profile yet, because such a profile may follow, and the
// broker could not get a token later. A pod without a service account has no token, and API
// servers without the admission of service accounts refuse a pod that asks for one.
//
// Every container of the pod gets a socket, unless the annotations name the containers with a
// socket. If the pod does not have a named container, another webhook may add it. A policy
// refuses the final pod if the container is still missing.
//
// Inject may be called again with its own result, also with one of another version or
// one that others have changed since. Then the broker becomes what it would be in a new
// pod, in the same place. A container that was added since gets a socket only if the
// annotations name it. With equal arguments the second call changes nothing. Some changes
// of others to the broker's container stay: resources, pulling always, environment
// variables, and mounts that do not cover the broker's own files. A startup probe that
// others redirected runs in the container (see reinjected).
//
// A pod that declined or cannot be injected (see the package comment) is
// returned as it is. The error is always a *Refusal: for an annotation of this
// project that is unknown or has a value that it can't have; for a container, volume or
// mount with a reserved name in a pod without the stamp of Inject; for a mount in the
// place of the socket; for a pod without containers.
func Inject(pod *corev1.Pod, namespace string, profiles []byte, common template.Template) (*corev1.Pod, []string, error) {
	decision, err := Decide(pod, true)
	if err != nil {
		return nil, nil, err
	}
	out := pod.DeepCopy()
	if !decision.Inject {
		var warnings []string
		if decision.Warning != "" {
			warnings = append(warnings, decision.Warning)
		}
		return out, warnings, nil
	}

	if len(pod.Spec.Containers) == 0 {
		var found problems
		found.add("spec.containers: found none, expected at least one container, which calls the broker")
		return nil, nil, found.refusal()
	}
	options, found := readPodOptions(pod, common)
	if err := found.refusal(); err != nil {
		return nil, nil, err
	}
	if pod.Spec.ServiceAccountName == "" || !mayUseKeyProviders(profiles) {
		common.KeyGateway = ""
	}
	if runsAsRoot(pod) {
		// A platform that allows the pod to run as root allows the broker to run as its own user.
		// As root, the broker would not start.
		common.NamespaceUserIDs = false
	}
	rendering := rendering{
		template: options.over(common),
		options:  options,
		stamp:    stampOf(common),
		shared:   sharesProcesses(pod) != "",
		snapshot: snapshotFits(pod, common.Seal.Snapshot(profiles), common.Seal.Signature),
	}
	leaveToPod(&rendering.template.Resources, pod)
	isFirst := !slices.ContainsFunc(pod.Spec.InitContainers, isBroker)
	warnings, err := rendering.put(out)
	if err != nil {
		return nil, nil, err
	}
	if isFirst {
		warnings = append(warnings, options.unknownProfiles(namespace, profiles)...)
	}
	for _, name := range options.awaited {
		warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: the pod has no container %q now and is refused unless another injector adds it",
			contract.ContainersAnnotation, name))
	}
	if profiles == nil || profile.Empty(profiles) {
		warnings = append(warnings, fmt.Sprintf(
			"namespace %q has no crypto profile yet: the pod waits until it has one, and its broker is restarted every ten minutes", namespace))
	}
	addSocketGroup(out, common.SocketGroup)
	addPullSecret(out, options.pullSecret)
	rendering.annotate(out, profiles)
	return out, textlimits.Warnings(warnings), nil
}

// hasResources reports whether the pod has resources as a whole. An empty field counts as none, as
// for Kubernetes.
func hasResources(pod *corev1.Pod) bool {
	return pod.Spec.Resources != nil && len(pod.Spec.Resources.Requests)+len(pod.Spec.Resources.Limits) > 0
}

// leaveToPod removes amounts of a resource that the pod has as a whole, of which the broker takes a part. For the other resources, the
// scheduler and quotas add up the containers.
func leaveToPod(broker *corev1.ResourceRequirements, pod *corev1.Pod) {
	if !hasResources(pod) {
		return
	}
	for _, amounts := range []*corev1.ResourceList{&broker.Requests, &broker.Limits} {
		maps.DeleteFunc(*amounts, func(name corev1.ResourceName, _ resource.Quantity) bool {
			_, requested := pod.Spec.Resources.Requests[name]
			_, limited := pod.Spec.Resources.Limits[name]
			return requested || limited
		})
		if len(*amounts) == 0 {
			*amounts = nil // as after decoding
		}
	}
}

func isBroker(container corev1.Container) bool {
	return container.Name == contract.BrokerContainer
}

// statusPortFree reports whether the broker may open its status port. Otherwise it returns a
// warning.
func (r *rendering) statusPortFree(pod *corev1.Pod) (bool, []string) {
	if pod.Spec.HostNetwork {
		return false, []string{"the pod uses the host's network: its broker opens no status port, has no metrics and counts as unverified"}
	}
	field, container := declares(pod, r.template.StatusPort)
	if container == "" {
		return true, nil
	}
	return false, []string{fmt.Sprintf("%s of container %s declares port %d: the broker opens no status port, has no metrics and counts as unverified; the annotation %s gives it another one",
		field, textlimits.Quoted(container), r.template.StatusPort, contract.MetricsPortAnnotation)}
}

// declares returns the first container that declares the port, so that the broker
// can't open it, and the field with the port. Both are empty if there is none.
func declares(pod *corev1.Pod, port int32) (field, name string) {
	each(pod, func(place string, container *corev1.Container) {
		for i, declared := range container.Ports {
			if name == "" && !isBroker(*container) && declared.ContainerPort == port && declared.Protocol != corev1.ProtocolUDP && declared.Protocol != corev1.ProtocolSCTP {
				field, name = fmt.Sprintf("%s.ports[%d]", place, i), container.Name
			}
		}
	})
	return field, name
}

// runsAsRoot reports whether containers that name no user run as root.
func runsAsRoot(pod *corev1.Pod) bool {
	context := pod.Spec.SecurityContext
	return context != nil && context.RunAsUser != nil && *context.RunAsUser == 0
}

// sharesProcesses returns the field that lets containers of the pod see each other's processes.
// It is empty if there is none. Through /proc, such containers can reach memory, files and
// sockets of processes of the same user. For the broker they also need CAP_SYS_PTRACE, because
// the broker is not dumpable.
func sharesProcesses(pod *corev1.Pod) string {
	switch {
	case pod.Spec.HostPID:
		return "spec.hostPID"
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		return "spec.shareProcessNamespace"
	}
	return ""
}

// sharedProcesses returns a warning if other containers see the broker's process. The owner of
// the pod chose that, but may not know the consequences.
func sharedProcesses(pod *corev1.Pod) []string {
	field := sharesProcesses(pod)
	if field == "" {
		return nil
	}
	return []string{field + " lets containers see the processes of each other and of the broker: those with CAP_SYS_PTRACE can read its memory and files, those that run as root or as the broker's user can end it, " +
		"and profiles that name containers in their callers refuse all of them"}
}

// each calls f for every init container and every container, with its place in
// the pod.
func each(pod *corev1.Pod, f func(place string, container *corev1.Container)) {
	for i := range pod.Spec.InitContainers {
		f(fmt.Sprintf("spec.initContainers[%d]", i), &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		f(fmt.Sprintf("spec.containers[%d]", i), &pod.Spec.Containers[i])
	}
}

// addSocketGroup adds the group that owns the sockets to the supplemental groups of the
// pod.
func addSocketGroup(pod *corev1.Pod, group int64) {
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	groups := &pod.Spec.SecurityContext.SupplementalGroups
	if !slices.Contains(*groups, group) {
		*groups = append(*groups, group)
	}
}

// addPullSecret adds a Secret to the Secrets with which the kubelet pulls the pod's images.
func addPullSecret(pod *corev1.Pod, name string) {
	secret := corev1.LocalObjectReference{Name: name}
	if name != "" && !slices.Contains(pod.Spec.ImagePullSecrets, secret) {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, secret)
	}
}
