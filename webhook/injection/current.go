// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Outdated returns a function that reports whether an injected pod has another broker
// than a new pod would get: another image, or a stamp with another template. The version
// in the stamp does not count, because two versions may make the same brokers. An image
// that the pod asked for does not count either. The template is rendered once, for all
// pods.
func (t Template) Outdated() func(*corev1.Pod) bool {
	current := t.stamp()
	return func(pod *corev1.Pod) bool {
		broker := injected.Broker(pod)
		if broker == nil {
			return false
		}
		if _, asked := pod.Annotations[contract.ImageAnnotation]; !asked && broker.Image != t.Image {
			return true
		}
		stamp, stamped := pod.Annotations[contract.InjectedAnnotation]
		return stamped && !SameTemplate(stamp, current)
	}
}

// SameTemplate reports whether two stamps name the same template.
func SameTemplate(a, b string) bool { return digestOf(a) == digestOf(b) }

func digestOf(stamp string) string { return stamp[strings.LastIndex(stamp, "/")+1:] }
