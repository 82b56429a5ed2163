// SPDX-License-Identifier: Apache-2.0

package presence

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// eventLabel is the reason of the event on a namespace whose label has no effect.
const eventLabel = "InjectionLabelWithoutEffect"

// withoutEffect returns the value of a namespace's injection label, and reports whether
// the label is there and has a value without effect.
func withoutEffect(namespace client.Object) (value string, is bool) {
	value, labelled := namespace.GetLabels()[contract.InjectionLabel]
	return value, labelled && value != contract.InjectionEnabled
}

// reportLabel makes an event on a namespace whose label has no effect, once for each
// value.
func (r *reconciler) reportLabel(namespace *corev1.Namespace) {
	value, is := withoutEffect(namespace)
	news := false
	r.update(namespace.Name, func(known *namespaceState) {
		news = is && (!known.labelReported || known.label != value)
		known.labelReported, known.label = is, value
	})
	if news {
		r.recorder.Eventf(namespace, nil, corev1.EventTypeWarning, eventLabel, actionInject,
			"The label %s of the namespace is %q and has no effect, expected %q or no such label. Pods of the namespace get a broker only if they ask for one by the annotation %s.",
			contract.InjectionLabel, value, contract.InjectionEnabled, contract.InjectAnnotation)
	}
}
