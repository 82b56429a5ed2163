// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

const (
	// lookInterval is the time between two looks at an active rollout.
	lookInterval = 2 * time.Second
	// collectPause is how long a request of [Request] waits, so that requests of many namespaces
	// become one.
	collectPause = 500 * time.Millisecond
)

// workers is the number of rollouts that are looked at at a time.
const workers = 2

// actionRollOut is the action of all events of this package.
const actionRollOut = "RollOut"

// Options configure the reconciler. All but Audit are required.
type Options struct {
	// Namespaces has the decisions about sets.
	Namespaces *state.Store
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// Queue has the profiles to look at, see [Request].
	Queue queue.Queue
	// Distributor has the answers of brokers.
	Distributor *distribute.Distributor
	// Changed is called after status.rollout of a CryptoProfile of a namespace was written.
	// It must not block.
	Changed func(namespace string)
	// Metrics is the registry of metrics.
	Metrics prometheus.Registerer
	// Audit receives a record of each step of a rollout. It may be nil.
	Audit *audit.Log
}

// reconciler writes status.rollout. A request without a namespace names a
// ClusterCryptoProfile, others name a CryptoProfile.
type reconciler struct {
	client            client.Client
	recorder          events.EventRecorder
	namespaces        *state.Store
	operatorNamespace string
	distributor       *distribute.Distributor
	changed           func(namespace string)
	phases            *phases
	audit             *audit.Log
	now               func() time.Time
}

// Setup adds the reconciler to the manager. It runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	phases := newPhases()
	if err := options.Metrics.Register(phases); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("rollout").
		Watches(&v1alpha1.CryptoProfile{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(queue.PromotionChanged)).
		Watches(&v1alpha1.ClusterCryptoProfile{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(queue.PromotionChanged)).
		WithOptions(queue.Options(options.Queue, workers)).
		Complete(&reconciler{
			client: mgr.GetClient(), recorder: mgr.GetEventRecorder(v1alpha1.FieldManager), namespaces: options.Namespaces,
			operatorNamespace: options.OperatorNamespace, distributor: options.Distributor, changed: options.Changed, phases: phases, audit: options.Audit, now: time.Now,
		})
}

// Request adds the profiles that are rolled out in a namespace to the queue, after a decision
// about its set.
func Request(q queue.Queue, namespace string, decided *state.Decision) {
	if decided == nil {
		return
	}
	add := func(namespace string, verdicts map[string]render.Verdict) {
		for name, verdict := range verdicts {
			if verdict.Rolling != "" {
				request := queue.Request(name)
				request.Namespace = namespace
				q.AddAfter(request, collectPause)
			}
		}
	}
	add(namespace, decided.Namespaced)
	add("", decided.Cluster)
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.get(ctx, request.NamespacedName)
	switch {
	case apierrors.IsNotFound(err):
		r.phases.set(request.NamespacedName, nil)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	case !o.GetDeletionTimestamp().IsZero():
		r.phases.set(request.NamespacedName, nil)
		return reconcile.Result{}, nil
	}
	next, lasts, err := r.decide(o)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !equality.Semantic.DeepEqual(next, o.status.Rollout) {
		before := o.status.Rollout.DeepCopy()
		switch err := r.write(ctx, o, next); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the cache is behind
			return reconcile.Result{RequeueAfter: lookInterval}, nil
		case err != nil:
			return reconcile.Result{}, err
		}
		r.report(o, before, next)
		r.recordChange(o, before, next)
		if request.Namespace != "" {
			r.changed(request.Namespace)
		}
	}
	r.phases.set(request.NamespacedName, next)
	if lasts {
		return reconcile.Result{RequeueAfter: lookInterval}, nil
	}
	return reconcile.Result{}, nil
}

// decide returns the next status of a rollout, and whether to look again.
func (r *reconciler) decide(o object) (next *v1alpha1.RolloutStatus, lasts bool, err error) {
	before := o.status.Rollout
	if o.spec.Rollout == nil {
		return nil, false, nil
	}
	p, err := render.Document(o.GetName(), o.spec)
	if err != nil {
		return nil, false, err
	}
	digest := Digest(p)
	in := r.rolling(o, digest)
	same := before != nil && before.Digest == digest
	switch {
	case in.unknown && same && requestOf(o).all && before.Phase != v1alpha1.RolloutComplete:
		done := complete(*before, "Somebody promoted it.")
		return &done, true, nil
	case in.unknown && same && in.problem != "" && before.Phase == v1alpha1.RolloutProgressing:
		waiting := *before
		waiting.Message = in.problem
		return &waiting, true, nil
	case in.unknown:
		return before, true, nil
	case len(in.namespaces) > 0:
		status := r.attempt(o, p.Name, digest, in).next(before, r.now())
		return &status, status.Phase != v1alpha1.RolloutReturned, nil
	case same && (in.refused || before.Phase == v1alpha1.RolloutComplete):
		return before, false, nil
	default:
		return nil, false, nil // the change was taken back, or replaces nothing
	}
}

// where has the namespaces in which a change is rolled out.
type where struct {
	// namespaces are the namespaces in which not all brokers serve the new profile yet, and
	// noRoom is the first of them whose set has no room for both profiles.
	namespaces []*corev1.Namespace
	noRoom     string
	// refused reports whether a namespace does not accept the profile. The rollout pauses and
	// continues once the profile is accepted.
	refused bool
	// unknown reports whether a namespace waits for the decision about its set, which is made
	// once the distributor knows all its brokers. problem says why it waits. It is empty for a
	// short wait.
	unknown bool
	problem string
}

// rolling returns the namespaces in which the change with a digest is rolled out.
func (r *reconciler) rolling(o object, digest string) (in where) {
	for _, ns := range o.namespaces {
		known := r.namespaces.Of(ns)
		verdict, is := o.verdict(known)
		switch {
		case known.Decision != nil && known.Decision.Excluded:
			continue // it never gets profiles, so there is no verdict to wait for
		case known.Decision != nil && known.Decision.Failure != "":
			return where{unknown: true, problem: fmt.Sprintf("Waits for namespace %s. %s", ns.Name, known.Decision.Failure)}
		case !is, verdict.Rolling != "" && verdict.Rolling != digest:
			return where{unknown: true}
		case verdict.Rolling == "":
			in.refused = in.refused || !verdict.Accepted
			continue
		}
		in.namespaces = append(in.namespaces, ns)
		if verdict.NoRoom && in.noRoom == "" {
			in.noRoom = ns.Name
		}
	}
	return in
}

// attempt returns the rollout of a change with its current state.
func (r *reconciler) attempt(o object, name, digest string, in where) attempt {
	a := attempt{spec: o.spec.Rollout, digest: digest, asked: requestOf(o), noRoom: in.noRoom}
	now, next := rollout{o.spec.Rollout, o.status.Rollout}, int32(1)
	if now.status != nil && now.status.Digest == digest {
		next = now.status.Step + 1
	}
	for _, ns := range in.namespaces {
		if !selects(a.spec, next, ns.Labels) {
			a.places = append(a.places, r.distributor.Places(ns.Name, name)...)
		}
		if below := now.reach(digest, ns.Labels); below > 0 {
			a.seen.Add(r.distributor.Sides(ns.Name, name, digest, below))
		} else {
			// The set of the namespace has the old profile alone.
			a.seen.Old.Brokers += r.distributor.Summary(ns.Name).Updated
		}
	}
	slices.Sort(a.places)
	return a
}

// report writes an event when a rollout began, took a step, waits or ended.
func (r *reconciler) report(o object, before, now *v1alpha1.RolloutStatus) {
	if now == nil || !isNews(before, now) {
		return
	}
	kind := corev1.EventTypeNormal
	if now.HasFailed() {
		kind = corev1.EventTypeWarning
	}
	note := now.Message
	switch now.Phase {
	case v1alpha1.RolloutComplete:
		note = strings.TrimSpace("All pods get the new profile. " + now.Message)
	case v1alpha1.RolloutFailed:
		note = fmt.Sprintf("The rollout stopped at %s: %s", now.Reach(o.spec.Rollout), now.Message)
	case v1alpha1.RolloutReturned:
		note = fmt.Sprintf("All pods get the old profile again: %s", now.Message)
	}
	event.Record(r.recorder, o.Object, kind, now.Reason(), actionRollOut, note)
}
