// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// stripWithout strips a pod without a broker to its controller and the fields that decide whether
// it should have a broker. Most pods of a cluster are such pods, so it keeps little. For a key
// gateway it also keeps the address and the ports.
func stripWithout(pod, stripped *corev1.Pod) {
	for _, key := range []string{contract.InjectAnnotation, corev1.MirrorPodAnnotationKey} {
		if value, is := pod.Annotations[key]; is {
			if stripped.Annotations == nil {
				stripped.Annotations = map[string]string{}
			}
			stripped.Annotations[key] = value
		}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		stripped.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	stripped.DeletionTimestamp = pod.DeletionTimestamp
	if injected.IsForWindows(pod) {
		stripped.Spec.OS = &corev1.PodOS{Name: corev1.Windows} // whichever field says so
	}
	stripped.Status.Phase = pod.Status.Phase
	if component := pod.Labels[contract.ComponentLabel]; component == contract.KeyGatewayComponent || component == contract.KeyAccessComponent {
		stripKeyGateway(pod, stripped)
	}
}

// stripKeyGateway keeps the label, the address and the ports of a key gateway or a key access
// service.
func stripKeyGateway(pod, stripped *corev1.Pod) {
	stripped.Labels = map[string]string{contract.ComponentLabel: pod.Labels[contract.ComponentLabel]}
	stripped.Status.PodIP = pod.Status.PodIP
	for _, container := range pod.Spec.Containers {
		stripped.Spec.Containers = append(stripped.Spec.Containers, corev1.Container{Name: container.Name, Ports: container.Ports})
	}
}
