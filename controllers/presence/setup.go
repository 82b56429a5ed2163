// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

const (
	// eventPause is how long an event waits, so that what happens to the pods of an owner
	// at about the same time becomes one event.
	eventPause = time.Second
	// repeatAfter is how long the API server keeps an event.
	repeatAfter = time.Hour
	// eventRate is how many owners get an event in a second, and eventBurst how many at
	// once.
	eventRate  = 5
	eventBurst = 25
)

// Owners are looked up by name.
//
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get

// Options configure the reconciler.
type Options struct {
	// Excluded are namespaces whose pods never get a broker, besides
	// kube-system and kube-node-lease.
	Excluded []string
	// Wanted reports whether a pod would get a broker if it were created now;
	// byDefault is whether its namespace asks for brokers. The error says in a
	// sentence without an end why the pod would be refused.
	Wanted func(pod *corev1.Pod, byDefault bool) (bool, error)
	// Outdated reports whether a pod's broker is another than a new pod would
	// get; nil if that is not known.
	Outdated func(*corev1.Pod) bool
	// Metrics is where metrics are registered.
	Metrics prometheus.Registerer
}

// Setup adds the reconciler to the manager. The manager's cache of pods must keep what
// [distribute.StripPod] keeps. The reconciler runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.Wanted == nil {
		return errors.New("presence: it is not known which pods get a broker")
	}
	r := &reconciler{
		cached:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(v1alpha1.FieldManager),
		options:  options,
		tally:    newTally(),
		limit:    flowcontrol.NewTokenBucketRateLimiter(eventRate, eventBurst),
	}
	if err := options.Metrics.Register(r.tally); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("presence").
		Watches(&corev1.Namespace{}, r.namespaceEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		WithOptions(queue.Options(queue.New("presence"), 2)).
		Complete(r)
}
