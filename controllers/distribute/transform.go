// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// annotationPrefix is the prefix of all annotations of this project.
const annotationPrefix = "cryptobroker.io/"

// StripPod is the transform of the pod cache. It keeps the fields of a pod that the reconcilers
// read, see strip. It returns other objects unchanged.
func StripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return strip(pod), nil
}

// strip returns a copy of a pod with the fields that the reconcilers read. Of a pod
// without a broker these are its identity, its controller, and what decides whether it
// should have a broker. Of a pod with a broker they are also its addresses, and the
// broker's container with its state. It drops the copy of the profiles in an annotation,
// which may have 16 KiB. It does not change a pod that was stripped before.
func strip(pod *corev1.Pod) *corev1.Pod {
	stripped := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:            pod.Name,
			Namespace:       pod.Namespace,
			UID:             pod.UID,
			ResourceVersion: pod.ResourceVersion,
		},
	}
	container := injected.Broker(pod)
	if container == nil {
		stripWithout(pod, stripped)
		return stripped
	}
	stripped.OwnerReferences = pod.OwnerReferences
	stripped.DeletionTimestamp = pod.DeletionTimestamp
	for key, value := range pod.Annotations {
		if strings.HasPrefix(key, annotationPrefix) && key != contract.ProfilesSnapshotAnnotation && key != contract.ProfilesSnapshotSignatureAnnotation {
			if stripped.Annotations == nil {
				stripped.Annotations = map[string]string{}
			}
			stripped.Annotations[key] = value
		}
	}
	stripped.Spec = corev1.PodSpec{
		NodeName:    pod.Spec.NodeName,
		HostNetwork: pod.Spec.HostNetwork,
		InitContainers: []corev1.Container{{
			Name:          container.Name,
			Image:         container.Image,
			Args:          container.Args,
			Env:           slices.Clone(instanceVariable(container)),
			Ports:         container.Ports,
			RestartPolicy: container.RestartPolicy,
		}},
	}
	stripped.Status = corev1.PodStatus{
		Phase:  pod.Status.Phase,
		PodIP:  pod.Status.PodIP,
		HostIP: pod.Status.HostIP,
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name == container.Name {
			stripped.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name:         status.Name,
				State:        corev1.ContainerState{Running: status.State.Running},
				RestartCount: status.RestartCount,
				ContainerID:  status.ContainerID,
				Started:      status.Started,
			}}
		}
	}
	return stripped
}
