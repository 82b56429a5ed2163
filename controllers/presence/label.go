// SPDX-License-Identifier: Apache-2.0

package presence

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// eventLabel means that the label of a namespace for injection has a value without effect.
const eventLabel = "InjectionLabelWithoutEffect"

// reportLabel makes an event on a namespace whose injection label has a value without
// effect.
func (r *reconciler) reportLabel(namespace *corev1.Namespace, value string) {
	r.recorder.Eventf(namespace, nil, corev1.EventTypeWarning, eventLabel, actionInject,
		"The label %s of the namespace is %q and has no effect, expected %q or no such label. Pods of the namespace get a broker only if they ask for one by the annotation %s.",
		contract.InjectionLabel, value, contract.InjectionEnabled, contract.InjectAnnotation)
}
