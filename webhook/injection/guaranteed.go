// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// guaranteedCPU is the CPU request and limit of the broker in a Guaranteed pod, if neither the
// pod nor the template limits its CPU.
var guaranteedCPU = resource.MustParse("250m")

// isGuaranteed reports whether the requests of CPU and memory equal the limits in all containers
// of the pod except the broker. Kubernetes evicts such a pod last if the broker has equal
// requests and limits as well.
func isGuaranteed(pod *corev1.Pod) bool {
	guaranteed := !hasResources(pod)
	each(pod, func(_ string, container *corev1.Container) {
		if isBroker(*container) {
			return
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, requested := container.Resources.Requests[name]
			limit := container.Resources.Limits[name]
			if limit.IsZero() || requested && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	})
	return guaranteed
}

// guarantee returns equal requests and limits for the broker. If the pod asks for one of the two,
// that amount is used for both. If it asks for neither, the limit of the template is used. There
// is a warning for each amount that the pod has asked for and does not get.
func (o *podOptions) guarantee(resources corev1.ResourceRequirements) (equal corev1.ResourceRequirements, warnings []string) {
	equal = *resources.DeepCopy()
	if equal.Requests == nil {
		equal.Requests = corev1.ResourceList{}
	}
	if equal.Limits == nil {
		equal.Limits = corev1.ResourceList{}
	}
	for _, r := range resourceAnnotations {
		_, requested := o.requests[r.resource]
		_, limited := o.limits[r.resource]
		amount := equal.Limits[r.resource]
		switch {
		case requested && limited:
			if request := equal.Requests[r.resource]; request.Cmp(amount) != 0 {
				warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: found %s and the limit %s, so that the pod is Burstable; with only one of them, or with equal values, it would be Guaranteed like its other containers",
					r.request, &request, &amount))
			}
			continue
		case requested:
			amount = equal.Requests[r.resource]
		case amount.IsZero() && r.resource == corev1.ResourceCPU:
			amount = guaranteedCPU.DeepCopy()
			if request := equal.Requests[r.resource]; request.Cmp(amount) > 0 {
				amount = request
			}
		case amount.IsZero():
			amount = equal.Requests[r.resource]
		}
		if amount.IsZero() {
			warnings = append(warnings, fmt.Sprintf("the broker has no amount of memory, so that the pod is Burstable; the annotation %s gives it one", contract.MemoryLimitAnnotation))
			continue
		}
		equal.Requests[r.resource], equal.Limits[r.resource] = amount, amount
	}
	return equal, warnings
}
