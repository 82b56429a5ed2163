// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watchForNamespaces requests a namespace when an input of its set has changed, or its ConfigMap.
func watchForNamespaces(b *builder.Builder, reader client.Reader, operatorNamespace string, traces *changetrace.Tracer) *builder.Builder {
	selected := selected{reader, operatorNamespace}
	ofNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{queue.Request(object.GetNamespace())}
	})
	return b.
		Watches(&corev1.Namespace{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(namespaceChanged)).
		Watches(&v1alpha1.CryptoProfile{}, traced(ofNamespace, traces, "CryptoProfile", namespaceOf), builder.WithPredicates(queue.StepChanged)).
		Watches(&corev1.ConfigMap{}, ofNamespace).
		Watches(&v1alpha1.ClusterCryptoProfile{}, traced(selected.handler(), traces, "ClusterCryptoProfile", selected.namespaces), builder.WithPredicates(queue.StepChanged))
}

// namespaceChanged ignores updates that make no difference to the set of a namespace.
var namespaceChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}

// selected requests the namespaces that a ClusterCryptoProfile selects, and the namespaces that
// it selected before the change.
type selected struct {
	reader            client.Reader
	operatorNamespace string
}

func (s selected) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) { s.add(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) { s.add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) { s.add(ctx, q, e.ObjectOld, e.ObjectNew) },
	}
}

func (s selected) add(ctx context.Context, q requests, profiles ...client.Object) {
	for _, name := range s.namespaces(ctx, profiles...) {
		q.Add(queue.Request(name))
	}
}

// namespaces returns the namespaces that one of some ClusterCryptoProfiles selects.
func (s selected) namespaces(ctx context.Context, profiles ...client.Object) (names []string) {
	var namespaces corev1.NamespaceList
	if err := s.reader.List(ctx, &namespaces); err != nil {
		log.FromContext(ctx).Error(err, "listing the namespaces of a ClusterCryptoProfile from the cache")
		return nil
	}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if contract.IsExcluded(ns.Name, s.operatorNamespace) {
			continue
		}
		for _, object := range profiles {
			if render.Selects(&object.(*v1alpha1.ClusterCryptoProfile).Spec, ns.Labels) {
				names = append(names, ns.Name)
				break
			}
		}
	}
	return names
}
