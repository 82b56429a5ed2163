// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents counts pods when their events arrive, and requests the owners about which there may
// be something to report.
func (r *reconciler) podEvents() handler.EventHandler {
	put := func(object client.Object, q requests) {
		if pod, ok := object.(*corev1.Pod); ok && !r.options.excluded(pod.Namespace) {
			request(q, pod.Namespace, r.tally.put(pod, r.options.judge(pod)))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { put(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { put(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				request(q, pod.Namespace, r.tally.remove(pod))
			}
		},
	}
}

// namespaceEvents follows the injection labels of namespaces, and requests the owners
// about which there may be something to report.
func (r *reconciler) namespaceEvents() handler.EventHandler {
	put := func(object client.Object, q requests) {
		if namespace, ok := object.(*corev1.Namespace); ok && !r.options.excluded(namespace.Name) && namespace.DeletionTimestamp.IsZero() {
			value, labelled := namespace.Labels[contract.InjectionLabel]
			concerned, isNew := r.tally.setLabel(namespace.Name, value, labelled)
			if isNew && value != contract.InjectionEnabled {
				r.reportLabel(namespace, value)
			}
			request(q, namespace.Name, concerned)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { put(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { put(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) {
			r.tally.setLabel(e.Object.GetName(), "", false) // its pods are gone, or go
		},
	}
}

// request makes a request for each of these owners.
func request(q requests, namespace string, owners []types.UID) {
	for _, uid := range owners {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: string(uid)}}, eventPause)
	}
}
