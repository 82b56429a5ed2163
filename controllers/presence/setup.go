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
	// eventPause is how long an event waits, so that changes of an owner's pods at about the same
	// time become one event.
	eventPause = time.Second
	// repeatAfter is how long the API server keeps an event.
	repeatAfter = time.Hour
	// eventRate is the maximum number of owners that get an event in a second, and eventBurst is
	// the maximum number at once.
	eventRate  = 5
	eventBurst = 25
)

// Owners are looked up by name.
//
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get

// Options configure the reconciler.
type Options struct {
	// Excluded are namespaces whose pods never get a broker, in addition to kube-system and
	// kube-node-lease.
	Excluded []string
	// Wanted reports whether a pod would get a broker if it were created now. byDefault reports
	// whether its namespace asks for brokers. The error says why the pod would be refused, in a
	// sentence without a full stop.
	Wanted func(pod *corev1.Pod, byDefault bool) (bool, error)
	// Outdated reports whether a new pod would get another broker than a pod has. It is nil if
	// that is not known.
	Outdated func(*corev1.Pod) bool
	// Metrics is the registry of metrics.
	Metrics prometheus.Registerer
}

// Setup adds the reconciler to the manager. The manager's cache of pods must have the fields that
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
