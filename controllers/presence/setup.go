// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

const (
	// countPause is how long a count waits, so that what happens to pods at about the
	// same time becomes one count.
	countPause = time.Second
	// repeatAfter is how long the API server keeps an event.
	repeatAfter = time.Hour
	// eventRate is how many owners get an event in a second, and eventBurst how many at
	// once.
	eventRate  = 5
	eventBurst = 25
	// limitPause is the time until the next owners get an event.
	limitPause = 2 * time.Second
)

// Owners are looked up by name.
//
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get

// Options configure the search.
type Options struct {
	// Excluded are namespaces whose pods never get a broker, besides
	// kube-system and kube-node-lease.
	Excluded []string
	// Wanted reports whether a pod would get a broker if it were created now;
	// byDefault is whether its namespace asks for brokers. The error says in a
	// sentence without an end why the pod would be refused.
	Wanted func(pod *corev1.Pod, byDefault bool) (bool, error)
	// Outdated reports whether a pod's broker is another than a new pod would
	// get; nil where that is not known.
	Outdated func(*corev1.Pod) bool
	// Metrics is where metrics are registered.
	Metrics prometheus.Registerer
}

// Setup adds the search to the manager, whose cache of pods must keep what
// distribute.StripPod keeps. It runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.Wanted == nil {
		return errors.New("presence: it is not known which pods get a broker")
	}
	r := &reconciler{
		cached:     mgr.GetClient(),
		live:       mgr.GetAPIReader(),
		recorder:   mgr.GetEventRecorder(v1alpha1.FieldManager),
		options:    options,
		limit:      flowcontrol.NewTokenBucketPassiveRateLimiter(eventRate, eventBurst),
		namespaces: map[string]namespaceState{},
	}
	if err := options.Metrics.Register(r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("presence").
		Watches(&corev1.Namespace{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(labelChanged)).
		Watches(&corev1.Pod{}, laterForNamespace(), builder.WithPredicates(options.podChanged())).
		WithOptions(queue.Options(queue.New("presence"), 2)).
		Complete(r)
}

// laterForNamespace makes a request for the namespace of an object.
func laterForNamespace() handler.EventHandler {
	add := func(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(queue.Request(object.GetNamespace()), countPause)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, q)
		},
	}
}

// podChanged ignores events that can't change the count, whatever the namespace says: of
// pods that are fine, and updates that leave a pod in its state.
func (o Options) podChanged() predicate.Predicate {
	state := func(object client.Object) state {
		if pod, ok := object.(*corev1.Pod); ok && !o.excluded(pod.Namespace) {
			return o.judge(pod, true)
		}
		return fine
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return state(e.Object) != fine },
		DeleteFunc: func(e event.DeleteEvent) bool { return state(e.Object) != fine },
		UpdateFunc: func(e event.UpdateEvent) bool { return state(e.ObjectOld) != state(e.ObjectNew) },
	}
}

// labelChanged ignores namespaces whose injection label did not change and has an
// effect.
var labelChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { // there are events of its pods, too
		_, without := withoutEffect(e.Object)
		return without
	},
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetLabels()[contract.InjectionLabel] != e.ObjectNew.GetLabels()[contract.InjectionLabel] ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}
