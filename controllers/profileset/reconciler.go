// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/profileset/internal/record"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// failureGrace is how long writing a set may fail before its profiles are no longer Accepted.
const failureGrace = 3 * time.Second

// everyNamespace is a request for all namespaces with a ConfigMap.
const everyNamespace = ""

// reconciler renders and writes the set of a namespace. Requests name a namespace.
type reconciler struct {
	client            client.Client
	recorder          events.EventRecorder
	namespaces        *state.Store
	configMaps        *configMaps
	renderings        *renderings
	guard             *guard
	definitions       *definitions
	sealer            *sealer
	record            *record.Record
	queue             queue.Queue
	keyGateway        KeyGateway // nil if there is none
	operatorNamespace string
	distributor       *distribute.Distributor
	// restored returns an error once etcd was restored from a backup. Then the process must write
	// nothing, because its memory no longer matches the cluster.
	restored func() error
	// decided is called after each decision.
	decided func(namespace string)
	audit   *audit.Log
	traces  *changetrace.Tracer
}

// sources are the inputs of a namespace's set.
type sources struct {
	namespace  *corev1.Namespace
	namespaced []v1alpha1.CryptoProfile
	cluster    []v1alpha1.ClusterCryptoProfile
	// rendered is the set that the profiles describe.
	rendered render.Result
	// found is the current ConfigMap, or nil.
	found *corev1.ConfigMap
	// pass is nil if no change of a profile is traced.
	pass *changetrace.Pass
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Name == everyNamespace {
		return reconcile.Result{}, r.requestAll(ctx)
	}
	begin, pass := time.Now(), r.traces.Begin(request.Name)
	var namespace corev1.Namespace
	err := r.client.Get(ctx, request.NamespacedName, &namespace)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return reconcile.Result{}, err
	}
	if gone || !namespace.DeletionTimestamp.IsZero() {
		r.forget(request.Name)
		return reconcile.Result{}, nil
	}
	if contract.IsExcluded(namespace.Name, r.operatorNamespace) {
		r.traces.Forget(request.Name)
		r.publish(&namespace, state.Decision{Excluded: true})
		return reconcile.Result{}, nil
	}

	from, err := r.collect(ctx, &namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	from.pass = pass
	set, target, pause, err := r.decide(ctx, from)
	if pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if failing := r.failingFor(&namespace, err, time.Now()); err != nil && failing < failureGrace {
		return reconcile.Result{}, err // tried again before a status reports it
	}
	if target.Written.After(begin) {
		distribute.SetWritten(target.Written.Sub(begin))
	}
	// Brokers get the set before a status may report on it. The distributor must know the target
	// before the decision is published. Otherwise a status would count brokers that serve the
	// previous set.
	r.namespaces.Update(&namespace, func(known *state.Namespace) { known.Target = target })
	if err := r.distributor.SetTarget(ctx, namespace.Name, target); err != nil {
		return reconcile.Result{}, err
	}
	if err == nil {
		r.distributor.Follow(namespace.Name, pass)
	}
	r.publish(&namespace, decision(set, target, err))
	return reconcile.Result{}, err
}

// requestAll requests each namespace with a ConfigMap, after the keys or the authorities of the
// key gateway have changed. Changes of profiles have priority, so they do not wait for all
// namespaces.
func (r *reconciler) requestAll(ctx context.Context) error {
	var sets corev1.ConfigMapList
	if err := r.client.List(ctx, &sets); err != nil {
		return err
	}
	var all []reconcile.Request
	for i := range sets.Items {
		all = append(all, queue.Request(sets.Items[i].Namespace))
	}
	r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, all...)
	return nil
}

// collect lists the profiles of a namespace and renders its set.
func (r *reconciler) collect(ctx context.Context, namespace *corev1.Namespace) (sources, error) {
	var namespaced v1alpha1.CryptoProfileList
	if err := r.client.List(ctx, &namespaced, client.InNamespace(namespace.Name)); err != nil {
		return sources{}, err
	}
	var cluster v1alpha1.ClusterCryptoProfileList
	if err := r.client.List(ctx, &cluster); err != nil {
		return sources{}, err
	}
	return sources{
		namespace:  namespace,
		namespaced: namespaced.Items,
		cluster:    cluster.Items,
		rendered:   r.renderings.effective(namespaced.Items, cluster.Items, namespace),
	}, nil
}

// decide determines the set for a namespace, and applies it. It returns the set that brokers
// should serve after that. If it is too early to write, pause is greater than 0.
func (r *reconciler) decide(ctx context.Context, from sources) (set guarded, target distribute.Target, pause time.Duration, err error) {
	if from.found, err = r.configMaps.read(ctx, from.namespace); err != nil {
		return guarded{Result: from.rendered}, r.namespaces.Of(from.namespace).Target, 0, err
	}
	if set, err = r.guard.judge(ctx, from); err != nil {
		return set, r.targetInPlace(ctx, from), 0, err
	}
	r.namespaces.Update(from.namespace, func(known *state.Namespace) { known.BaselineMissing = set.frozen })
	set.annotations = withAge(set.annotations, oldestOf(from))
	if set, err = r.hold(ctx, from, set); err != nil {
		return set, r.targetInPlace(ctx, from), 0, err
	}
	target, pause, err = r.apply(ctx, from, set)
	return set, target, pause, err
}

// decision returns the decision about a set, with the error of applying the set.
func decision(set guarded, target distribute.Target, failure error) state.Decision {
	decided := state.Decision{
		Namespaced: set.Namespaced,
		Cluster:    set.Cluster,
		Digest:     target.Digest,
		Emptied:    len(set.Names) == 0 && target.Digest != "" && set.Refusal == "",
		Withheld:   set.withheld,
		Held:       set.held,
	}
	if failure != nil {
		decided.Failure = fmt.Sprintf("The namespace's set could not be written, and brokers keep the set that they have: %s.", failure)
	}
	return decided
}

// publish stores the decision about a namespace and calls decided.
func (r *reconciler) publish(namespace *corev1.Namespace, decided state.Decision) {
	var before *state.Decision
	r.namespaces.Update(namespace, func(known *state.Namespace) { before, known.Decision = known.Decision, &decided })
	r.recordWithheld(namespace, before, decided)
	r.decided(namespace.Name)
}

// failingFor returns how long writing the set of a namespace has failed, including err.
func (r *reconciler) failingFor(namespace *corev1.Namespace, err error, now time.Time) (duration time.Duration) {
	r.namespaces.Update(namespace, func(known *state.Namespace) {
		switch {
		case err == nil:
			known.FailingSince = time.Time{}
			return
		case known.FailingSince.IsZero():
			known.FailingSince = now
		}
		duration = now.Sub(known.FailingSince)
	})
	return duration
}

// forget drops the memory of a namespace that is gone.
func (r *reconciler) forget(name string) {
	if known, was := r.namespaces.Forget(name); was {
		r.record.Drop(known.UID)
	}
	r.distributor.Forget(name)
	r.decided(name)
}
