// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	kubeevent "github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

// There are no RBAC markers for the rights that the catalogue needs besides reading: the
// chart grants them only with the catalogue. An apply that creates is authorized with
// the object's name, so create and patch are limited to the catalogue's names.

// fieldManager owns the fields that the catalogue sets.
const fieldManager = v1alpha1.FieldManager + "-catalogue"

// Reasons and the action of events.
const (
	// eventNotOurs means that a profile has the name of a profile of the catalogue, but not its
	// label. The operator does not change it.
	eventNotOurs = "CatalogueNameTaken"
	// eventLeft means that the flags do not name a profile of the catalogue any more. The
	// operator does not change it.
	eventLeft = "CatalogueLeft"
	// eventRefused means that a profile of the catalogue could not be applied.
	eventRefused = "CatalogueRefused"

	actionApply = "Apply"
)

const (
	// validatorPause is the time between two checks whether the validator serves.
	validatorPause = 500 * time.Millisecond
	// refusedPause is the time until a profile that the API server refused is applied again.
	refusedPause = 10 * time.Second
)

// Options are the settings of the reconciler.
type Options struct {
	// Profiles are names of the catalogue.
	Profiles []string
	// NamespaceSelector selects the namespaces that get them. If it is nil, all namespaces get
	// them.
	NamespaceSelector *metav1.LabelSelector
	// Ready returns nil once the webhook that validates profiles serves. Ready is nil if there is
	// no webhook to wait for.
	Ready func() error
}

// Setup adds the reconciler to the manager. It runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	all := queue.New("catalogue")
	for _, name := range options.Profiles {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("the catalogue has no profile %q", name)
		}
		all.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("catalogue").
		Watches(&v1alpha1.ClusterCryptoProfile{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(changed)).
		WithOptions(queue.Options(all, 1)).
		Complete(&reconciler{
			client:   mgr.GetClient(),
			recorder: mgr.GetEventRecorder(v1alpha1.FieldManager),
			options:  options,
			reports:  map[string]report{},
		})
}

// changed ignores events of objects without a name of the catalogue, and updates of a
// status.
var changed = predicate.And[client.Object](
	predicate.NewPredicateFuncs(func(object client.Object) bool { return slices.Contains(Names(), object.GetName()) }),
	predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}},
)

type reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	options  Options

	mu sync.Mutex
	// reports are the last events about objects, by name.
	reports map[string]report
}

// report is an event about an object, which may not exist yet.
type report struct {
	object types.UID
	reason string
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var found v1alpha1.ClusterCryptoProfile
	err := r.client.Get(ctx, request.NamespacedName, &found)
	exists := !apierrors.IsNotFound(err)
	if exists && err != nil {
		return reconcile.Result{}, err
	}
	ours := Has(&found)
	if !slices.Contains(r.options.Profiles, request.Name) || exists && !ours {
		refused.DeleteLabelValues(request.Name)
	}
	switch {
	case !slices.Contains(r.options.Profiles, request.Name):
		if exists && ours {
			r.report(ctx, &found, corev1.EventTypeNormal, eventLeft,
				"The operator's settings no longer list this profile of its catalogue, so the operator does not change it. Delete it when no application uses it.")
		}
		return reconcile.Result{}, nil
	case exists && !ours:
		r.report(ctx, &found, corev1.EventTypeWarning, eventNotOurs, fmt.Sprintf(
			"The operator's catalogue has a profile of this name. The operator does not replace this one, because it lacks the label %s=%s. To let the operator replace it, add the label.",
			v1alpha1.CatalogueLabel, v1alpha1.CatalogueLabelValue))
		return reconcile.Result{}, nil
	case exists && !found.DeletionTimestamp.IsZero():
		return reconcile.Result{}, nil // comes back when it is gone
	case !r.ready():
		return reconcile.Result{RequeueAfter: validatorPause}, nil
	}
	return r.apply(ctx, request.Name, exists, &found)
}

// ready reports whether the webhook that validates profiles serves.
func (r *reconciler) ready() bool { return r.options.Ready == nil || r.options.Ready() == nil }

// apply makes the object equal to the catalogue. A missing object is made without force, so an
// object that somebody else makes meanwhile stays theirs.
func (r *reconciler) apply(ctx context.Context, name string, exists bool, found *v1alpha1.ClusterCryptoProfile) (reconcile.Result, error) {
	object, err := desired(name, r.options.NamespaceSelector)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	options := []client.ApplyOption{client.FieldOwner(fieldManager)}
	if exists {
		object.SetUID(found.UID)
		options = append(options, client.ForceOwnership)
	}
	version := found.ResourceVersion
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	switch {
	case err == nil:
		r.forget(name)
		refused.DeleteLabelValues(name)
		if object.GetResourceVersion() != version {
			log.FromContext(ctx).Info("applied a profile of the catalogue", "profile", name)
		}
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: validatorPause}, nil // somebody else wrote the object: read it again
	case isNotServing(err):
		// The API server does not reach the webhook at this time.
		log.FromContext(ctx).V(1).Info("the webhook that validates profiles does not answer yet", "profile", name, "reason", err.Error())
		return reconcile.Result{RequeueAfter: validatorPause}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		log.FromContext(ctx).Error(err, "the API server refuses a profile of the catalogue", "profile", name)
		refused.WithLabelValues(name).Set(1)
		found.Name = name // even of a missing object
		r.report(ctx, found, corev1.EventTypeWarning, eventRefused, "The profile of the operator's catalogue could not be applied: "+err.Error())
		return reconcile.Result{RequeueAfter: refusedPause}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("apply profile %q of the catalogue: %w", name, err)
	}
}

// isNotServing reports whether an error came from the connection to the webhook. Other
// errors are refusals.
func isNotServing(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}

// report makes an event on an object, unless it is the same as the last one.
func (r *reconciler) report(ctx context.Context, object *v1alpha1.ClusterCryptoProfile, kind, reason, note string) {
	r.mu.Lock()
	before, now := r.reports[object.Name], report{object.UID, reason}
	r.reports[object.Name] = now
	r.mu.Unlock()
	if before == now {
		return
	}
	log.FromContext(ctx).Info(note, "profile", object.Name, "reason", reason)
	kubeevent.Record(r.recorder, object, kind, reason, actionApply, note)
}

// forget drops the last event about an object, so the next event is always made.
func (r *reconciler) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reports, name)
}
