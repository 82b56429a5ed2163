// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// actionUse is the action of events about policies and peers.
const actionUse = "Use"

// SetupKeyAccess adds the controllers that write the status of KeyAccessPolicies and KeyAccessPeers of the operator's
// namespace. The manager's cache must have these objects only of this namespace.
func SetupKeyAccess(mgr ctrl.Manager, options Options) error {
	var queues []queue.Queue
	poller := newPoller(mgr.GetClient(), contract.KeyAccessComponent, options, func(key types.NamespacedName) {
		for _, requests := range queues { // a request for an object that does not exist does nothing
			requests.Add(reconcile.Request{NamespacedName: key})
		}
	})
	metrics := accessMetrics{}
	for _, kind := range []struct {
		kind   string
		name   string
		object client.Object
		get    func(context.Context, types.NamespacedName) (client.Object, *v1alpha1.KeyAccessStatus, error)
	}{
		{"KeyAccessPolicy", "key-access-policy-status", &v1alpha1.KeyAccessPolicy{}, func(ctx context.Context, key types.NamespacedName) (client.Object, *v1alpha1.KeyAccessStatus, error) {
			p := &v1alpha1.KeyAccessPolicy{}
			err := mgr.GetClient().Get(ctx, key, p)
			return p, &p.Status, err
		}},
		{"KeyAccessPeer", "key-access-peer-status", &v1alpha1.KeyAccessPeer{}, func(ctx context.Context, key types.NamespacedName) (client.Object, *v1alpha1.KeyAccessStatus, error) {
			p := &v1alpha1.KeyAccessPeer{}
			err := mgr.GetClient().Get(ctx, key, p)
			return p, &p.Status, err
		}},
	} {
		requests := queue.New(kind.name)
		queues = append(queues, requests)
		r := &accessReconciler{
			client: mgr.GetClient(), recorder: mgr.GetEventRecorder(v1alpha1.FieldManager), poller: poller, namespace: options.OperatorNamespace,
			get: kind.get, memory: newMemory(),
		}
		metrics[kind.kind] = r.memory
		err := ctrl.NewControllerManagedBy(mgr).Named(kind.name).
			Watches(kind.object, followedBy(poller), builder.WithPredicates(queue.SpecChanged)).
			WithOptions(queue.Options(requests, 1)).Complete(r)
		if err != nil {
			return err
		}
	}
	if err := options.Metrics.Register(metrics); err != nil {
		return err
	}
	return mgr.Add(poller)
}

// accessReconciler writes the status of the objects of one kind.
type accessReconciler struct {
	client    client.Client
	recorder  events.EventRecorder
	poller    *poller
	namespace string
	// get returns an object with a pointer to its status.
	get    func(context.Context, types.NamespacedName) (client.Object, *v1alpha1.KeyAccessStatus, error)
	memory *memory
}

// Reconcile implements reconcile.Reconciler.
func (r *accessReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, status, err := r.get(ctx, request.NamespacedName)
	if err != nil {
		r.memory.forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, views, wait := r.memory.answers(r.poller, object)
	if wait != 0 {
		return reconcile.Result{RequeueAfter: max(0, wait)}, nil
	}
	before, next := status.DeepCopy(), status.DeepCopy()
	fillAccess(next, object.GetGeneration(), views, r.namespace)
	b, a := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	known.ready = *a
	r.memory.put(request.NamespacedName, known)
	if equality.Semantic.DeepEqual(next, before) {
		return reconcile.Result{}, nil
	}
	if written, err := r.memory.write(ctx, r.client, object, next, known); err != nil || !written {
		return reconcile.Result{}, err
	}
	if kind, changed := kindOf(b, a); changed {
		event.Record(r.recorder, object, kind, a.Reason, actionUse, a.Message)
	}
	return reconcile.Result{}, nil
}

// fillAccess fills in a status from the answers of the services. Each view has the object.
// namespace is the namespace of the services.
func fillAccess(status *v1alpha1.KeyAccessStatus, generation int64, views []*providerreport.Provider, namespace string) {
	status.ObservedGeneration = generation
	status.Services = int32(len(views)) //nolint:gosec // a few
	accepted := condition(metav1.ConditionTrue, v1alpha1.ReasonUnderstood, "Nothing is wrong with it.")
	late := func(view *providerreport.Provider) bool { return isLate(view, generation) }
	with := func(problem string) func(*providerreport.Provider) bool {
		return func(view *providerreport.Provider) bool { return !late(view) && view.Problem == problem }
	}
	invalid, held := slices.IndexFunc(views, with(providerreport.Invalid)), slices.IndexFunc(views, with(providerreport.HeldBack))
	switch {
	case len(views) == 0:
		accepted = condition(metav1.ConditionUnknown, v1alpha1.ReasonNoService,
			"No key access service has answered the operator for %s. Find out whether they are installed and run: kubectl get pods -n %s -l %s=%s.",
			patience, namespace, contract.ComponentLabel, contract.KeyAccessComponent)
	case invalid >= 0:
		accepted = condition(metav1.ConditionFalse, v1alpha1.ReasonInvalid, "A key access service cannot use it: %s.", views[invalid].Detail)
	case slices.ContainsFunc(views, late):
		accepted = condition(metav1.ConditionUnknown, v1alpha1.ReasonNotRead,
			"A key access service has not read generation %d within %s. Its log may say why.", generation, patience)
	}
	ready := accepted
	switch {
	case accepted.Status != metav1.ConditionTrue:
	case held >= 0:
		ready = condition(metav1.ConditionFalse, v1alpha1.ReasonHeldBack, "A key access service still uses the last valid form of this object: %s.", views[held].Detail)
	default:
		ready = condition(metav1.ConditionTrue, v1alpha1.ReasonInUse, "All key access services use it.")
	}
	accepted.Type, ready.Type = v1alpha1.ConditionAccepted, v1alpha1.ConditionReady
	statuspatch.SetCondition(&status.Conditions, ready, generation)
	statuspatch.SetCondition(&status.Conditions, accepted, generation)
}
