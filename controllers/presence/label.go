// SPDX-License-Identifier: Apache-2.0

package presence

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// eventLabel is the reason of the event on a namespace whose label has no effect.
const eventLabel = "InjectionLabelWithoutEffect"

// withoutEffect returns the value of a namespace's label that asks for brokers, and
// reports whether it is there and is none that has an effect.
func withoutEffect(namespace client.Object) (value string, is bool) {
	value, labelled := namespace.GetLabels()[contract.InjectionLabel]
	return value, labelled && value != contract.InjectionEnabled
}

// tellOfLabel makes an event on a namespace whose label has no effect, once for each
// value.
func (r *reconciler) tellOfLabel(namespace *corev1.Namespace) {
	value, is := withoutEffect(namespace)
	r.mu.Lock()
	before, told := r.labelled[namespace.Name]
	if is {
		r.labelled[namespace.Name] = value
	} else {
		delete(r.labelled, namespace.Name)
	}
	r.mu.Unlock()
	if is && (!told || before != value) {
		r.recorder.Eventf(namespace, nil, corev1.EventTypeWarning, eventLabel, actionInject,
			"The label %s of the namespace is %q and has no effect, expected %q or no such label. Pods of the namespace get a broker only if they ask for one by the annotation %s.",
			contract.InjectionLabel, value, contract.InjectionEnabled, contract.InjectAnnotation)
	}
}
