// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

const (
	// numbersWait is how long a status waits that differs only in numbers, and numbersInterval is
	// the shortest time between two such writes of a provider.
	numbersWait     = 10 * time.Second
	numbersInterval = time.Minute
	// numbersRate is the maximum number of such statuses that are written a second, and
	// urgentRate is the maximum number of other statuses.
	numbersRate = 10
	urgentRate  = 50
	// staleWait is how long to wait until the cache has the written status.
	staleWait = 100 * time.Millisecond
)

// reconciler writes the status of providers of both kinds.
type reconciler struct {
	client            client.Client
	recorder          events.EventRecorder
	poller            *poller
	operatorNamespace string
	memory            *memory
	urgent, numbers   flowcontrol.RateLimiter
}

// Reconcile implements reconcile.Reconciler. A request without a namespace is for a
// ClusterKeyProvider.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, spec, status, err := r.get(ctx, request.NamespacedName)
	if err != nil {
		r.memory.forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, views, wait := r.memory.answers(r.poller, object)
	if wait != 0 {
		return reconcile.Result{RequeueAfter: max(0, wait)}, nil
	}
	next := status.DeepCopy()
	fill(next, object, spec, views, r.operatorNamespace)
	known.ready = *meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	delay := r.delay(&known, next, status)
	r.memory.put(request.NamespacedName, known)
	if delay != 0 {
		return reconcile.Result{RequeueAfter: max(0, delay)}, nil
	}
	before := status.DeepCopy()
	if written, err := r.memory.write(ctx, r.client, object, next, known); err != nil || !written {
		return reconcile.Result{}, err
	}
	report(r.recorder, object, spec, before, next)
	return reconcile.Result{}, nil
}

// get returns a provider of either kind, with pointers into it.
func (r *reconciler) get(ctx context.Context, key types.NamespacedName) (client.Object, *v1alpha1.KeyProviderSpec, *v1alpha1.KeyProviderStatus, error) {
	if key.Namespace == "" {
		p := &v1alpha1.ClusterKeyProvider{}
		err := r.client.Get(ctx, key, p)
		return p, &p.Spec.KeyProviderSpec, &p.Status, err
	}
	p := &v1alpha1.KeyProvider{}
	err := r.client.Get(ctx, key, p)
	return p, &p.Spec, &p.Status, err
}

// delay returns how long the status waits for its write. It is 0 for a write at once, and
// negative if no write is needed.
func (r *reconciler) delay(known *remembered, next, written *v1alpha1.KeyProviderStatus) time.Duration {
	if equality.Semantic.DeepEqual(next, written) {
		known.differsSince = time.Time{}
		return -1
	}
	if !equality.Semantic.DeepEqual(withoutNumbers(next), withoutNumbers(written)) {
		if !r.urgent.TryAccept() {
			return rand.N(time.Second)
		}
		known.differsSince = time.Time{}
		return 0
	}
	now := time.Now()
	if known.differsSince.IsZero() {
		known.differsSince = now
	}
	if wait := max(known.differsSince.Add(numbersWait).Sub(now), known.numbersWritten.Add(numbersInterval).Sub(now)); wait > 0 {
		return wait
	}
	if !r.numbers.TryAccept() {
		return time.Second + rand.N(10*time.Second)
	}
	known.differsSince, known.numbersWritten = time.Time{}, now
	return 0
}

// withoutNumbers returns a status without the values for which nobody waits.
func withoutNumbers(status *v1alpha1.KeyProviderStatus) *v1alpha1.KeyProviderStatus {
	s := status.DeepCopy()
	s.Gateways, s.Latency = 0, ""
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		e.ReachedBy, e.PausedBy, e.Latency, e.Connections = 0, 0, "", 0
	}
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return s
}

// remembered is the memory of one object in addition to its status.
type remembered struct {
	uid types.UID
	// lateSince is the time since which a gateway lacks this generation of the provider.
	lateSince  time.Time
	generation int64
	// differsSince is the time since which the status differs in numbers from the written one,
	// and numbersWritten is the time of the last write of numbers.
	differsSince, numbersWritten time.Time
	// pendingVersion is the resource version of a write that the cache may not have yet.
	pendingVersion string
	// ready is the condition Ready, which is empty before the first status.
	ready metav1.Condition
}

// wait returns how long to wait for gateways until the status may be written.
func (k *remembered) wait(generation int64, views []*providerreport.Provider, silence time.Duration, now time.Time) time.Duration {
	if len(views) == 0 {
		return patience - silence
	}
	late := slices.ContainsFunc(views, func(view *providerreport.Provider) bool { return isLate(view, generation) })
	if !late {
		k.lateSince = time.Time{}
		return 0
	}
	if k.lateSince.IsZero() || k.generation != generation {
		k.lateSince, k.generation = now, generation
	}
	return k.lateSince.Add(patience).Sub(now)
}
