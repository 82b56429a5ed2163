// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

// The numbers of requests that each reconciler handles at a time.
const (
	profileWorkers = 4
	clusterWorkers = 2
)

// Options configure the reconcilers. All are required but Annotate.
type Options struct {
	// Namespaces has the decisions about sets.
	Namespaces *state.Store
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// StatusPort is the port that injected brokers answer on, for messages.
	StatusPort int32
	// Annotate reports whether pods are annotated to make their kubelets refresh the
	// profiles at once, for messages.
	Annotate bool
	// Queue has the namespaces whose CryptoProfiles need a status.
	Queue queue.Queue
	// Distributor counts the brokers of a namespace.
	Distributor *distribute.Distributor
	// Metrics is the registry of metrics.
	Metrics prometheus.Registerer
}

// Request adds a namespace to the queue. Requests within a short time become one.
func Request(q queue.Queue, namespace string) {
	q.AddAfter(queue.Request(namespace), collectPause)
}

// Setup adds the reconcilers to the manager. They run on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	var (
		clusterQueue = queue.New("cluster-profile-status")
		totals       = newTotals()
		memories     = conditionMetrics{newMemory(options.Annotate), newMemory(options.Annotate)}
		conditions   = conditions{options.OperatorNamespace, options.StatusPort, options.Annotate, newAssessments()}
		reporter     = &reporter{
			recorder:   mgr.GetEventRecorder(v1alpha1.FieldManager),
			client:     mgr.GetClient(),
			namespaces: options.Namespaces,
			conditions: conditions,
		}
	)
	if err := options.Metrics.Register(memories); err != nil {
		return err
	}
	profiles := queue.Options(options.Queue, profileWorkers)
	profiles.Reconciler = &profileReconciler{
		client: mgr.GetClient(), namespaces: options.Namespaces, totals: totals, distributor: options.Distributor,
		conditions: conditions, reporter: reporter, memory: memories.profiles, cluster: clusterQueue,
	}
	if _, err := controller.New("profile-status", mgr, profiles); err != nil {
		return err
	}
	// The namespaces that a ClusterCryptoProfile selects make further requests.
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster-profile-status").
		Watches(&v1alpha1.ClusterCryptoProfile{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(queue.RolloutChanged)).
		WithOptions(queue.Options(clusterQueue, clusterWorkers)).
		Complete(&clusterReconciler{
			client: mgr.GetClient(), totals: totals, distributor: options.Distributor, conditions: conditions,
			reporter: reporter, memory: memories.cluster, operatorNamespace: options.OperatorNamespace,
		})
}
