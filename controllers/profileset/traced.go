// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
)

// traced returns a handler that begins to follow changes of profiles in traces, before it
// requests their namespaces. concerned returns the namespaces of profiles.
func traced(next handler.EventHandler, traces *changetrace.Tracer, kind string, concerned func(context.Context, ...client.Object) []string) handler.EventHandler {
	if traces == nil {
		return next
	}
	seen := func(ctx context.Context, now client.Object, deleted bool, all ...client.Object) {
		traces.Seen(changetrace.Of(kind, now, deleted), concerned(ctx, all...))
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) {
			if !e.IsInInitialList { // at its start the leader finds these sets; they are not changes
				seen(ctx, e.Object, false, e.Object)
			}
			next.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			deleted := !e.ObjectNew.GetDeletionTimestamp().IsZero()
			switch before := e.ObjectOld; {
			case deleted && !before.GetDeletionTimestamp().IsZero():
			case deleted, before.GetUID() != e.ObjectNew.GetUID(), before.GetGeneration() != e.ObjectNew.GetGeneration():
				seen(ctx, e.ObjectNew, deleted, before, e.ObjectNew)
			}
			next.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) {
			if e.Object.GetDeletionTimestamp().IsZero() { // otherwise the operator has already seen its update
				seen(ctx, e.Object, true, e.Object)
			}
			next.Delete(ctx, e, q)
		},
	}
}

// namespaceOf returns the namespace of a CryptoProfile, from its states before and after a
// change.
func namespaceOf(_ context.Context, profiles ...client.Object) []string {
	return []string{profiles[0].GetNamespace()}
}
