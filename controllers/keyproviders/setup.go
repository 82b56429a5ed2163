// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

const workers = 2

// Options configure the reconciler. All are required.
type Options struct {
	// OperatorNamespace is the namespace of the key gateways and of the key access service.
	OperatorNamespace string
	// Ask asks a key gateway.
	Ask Ask
	// Interval is how often each gateway is asked while there are key providers.
	Interval time.Duration
	// Metrics is the registry of metrics.
	Metrics prometheus.Registerer
}

// Setup adds the reconciler and the poller to the manager. The manager's cache of pods must have
// the fields that [distribute.StripPod] keeps of key gateways. Both run on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	requests := queue.New("key-provider-status")
	poller := newPoller(mgr.GetClient(), contract.KeyGatewayComponent, options, func(key types.NamespacedName) {
		requests.Add(reconcile.Request{NamespacedName: key})
	})
	r := &reconciler{
		client: mgr.GetClient(), recorder: mgr.GetEventRecorder(v1alpha1.FieldManager), poller: poller, operatorNamespace: options.OperatorNamespace,
		memory: newMemory(),
		urgent: flowcontrol.NewTokenBucketRateLimiter(urgentRate, urgentRate), numbers: flowcontrol.NewTokenBucketRateLimiter(numbersRate, numbersRate),
	}
	if err := options.Metrics.Register(providerMetrics{r.memory}); err != nil {
		return err
	}
	if err := mgr.Add(poller); err != nil {
		return err
	}
	followed := followedBy(poller)
	return ctrl.NewControllerManagedBy(mgr).
		Named("key-provider-status").
		Watches(&v1alpha1.KeyProvider{}, followed, builder.WithPredicates(queue.SpecChanged)).
		Watches(&v1alpha1.ClusterKeyProvider{}, followed, builder.WithPredicates(queue.SpecChanged)).
		WithOptions(queue.Options(requests, workers)).
		Complete(r)
}

// followedBy returns a handler that tells a poller of objects, and adds them to the queue.
func followedBy(poller *poller) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			poller.put(e.Object)
			q.Add(requestFor(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				poller.remove(e.ObjectOld)
			}
			poller.put(e.ObjectNew)
			q.Add(requestFor(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			poller.remove(e.Object)
			q.Add(requestFor(e.Object))
		},
	}
}

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}
