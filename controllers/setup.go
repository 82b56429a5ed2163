// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/queue"
)

// How many requests each reconciler works on at a time.
const (
	namespaceWorkers     = 8
	statusWorkers        = 4
	clusterStatusWorkers = 2
)

// Options configure the reconcilers.
type Options struct {
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// StatusPort is the port that injected brokers answer on, for messages.
	StatusPort int32
	// Annotate is whether pods are annotated to make their kubelets refresh
	// the profiles at once.
	Annotate bool
	// Ask asks a broker what it serves.
	Ask func(context.Context, netip.AddrPort) (confirm.Answer, error)
	// Outdated tells whether a pod's broker is another than a new pod would get;
	// nil where that is not known.
	Outdated func(*corev1.Pod) bool
	// MinimumStrength is the least strength in bits that a profile must have to be
	// served, 0 for none.
	MinimumStrength int
	// Keys are those that sets are signed with.
	Keys Keys
	// Metrics is where metrics are registered.
	Metrics prometheus.Registerer
}

// CacheOptions are what the manager's cache must be made with: pods stripped to
// what is read of them, and of ConfigMaps only those with profiles, which is
// also all that the operator may read.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      distribute.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Transform: distribute.StripPod},
			&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.ProfilesConfigMap)},
		},
	}
}

// Setup adds the reconcilers to the manager, whose cache must be made with
// CacheOptions. They run on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.OperatorNamespace == "" {
		return errors.New("the operator's namespace is not known")
	}
	if options.Keys == nil {
		return errors.New("there are no keys to sign sets with")
	}
	var (
		namespaces      = queue.New("namespace")
		statuses        = queue.New("profile-status")
		clusterStatuses = queue.New("cluster-profile-status")
		board           = newBoard()
		tally           = newTally()
		restoration     = newRestoration()
		report          = func(namespace string) { statuses.AddAfter(requestFor("", namespace), reportPause) }
		propagator      = propagator{options.OperatorNamespace, options.StatusPort, options.Annotate, newAssessments()}
		announcer       = &announcer{
			recorder:   mgr.GetEventRecorder(v1alpha1.FieldManager),
			client:     mgr.GetClient(),
			propagator: propagator,
			told:       map[string]string{},
		}
	)
	distributor, err := distribute.Setup(mgr, distribute.Options{
		Annotate: options.Annotate,
		Ask:      options.Ask,
		Outdated: options.Outdated,
		Changed: func(namespace string) {
			report(namespace)
			if decided, ok := board.get(namespace); ok && decided.emptied {
				// The empty set goes with the last broker.
				namespaces.Add(requestFor("", namespace))
			}
		},
		Newer: func(namespace string) { namespaces.Add(requestFor("", namespace)) },
	})
	if err != nil {
		return err
	}
	if err := distributor.Register(options.Metrics); err != nil {
		return err
	}
	sealer := newSealer(mgr.GetClient(), options.Keys, distributor.Revision)
	record := newRecord(mgr.GetClient(), mgr.GetAPIReader(), options.OperatorNamespace)
	baselines := newBaselines(sealer, record, announcer.recorder)
	guard := newGuard(options.MinimumStrength, baselines.read)
	if err := errors.Join(guard.register(options.Metrics), options.Metrics.Register(baselines.missing)); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(record.run)); err != nil {
		return err
	}
	definitions := newDefinitions(mgr.GetAPIReader(), announcer.recorder)
	if err := options.Metrics.Register(definitions.held); err != nil {
		return err
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return restoration.watch(ctx, mgr.GetCache()) }))
	if err != nil {
		return err
	}
	options.Keys.OnChange(func(context.Context) { namespaces.Add(requestFor("", everyNamespace)) })

	work := queue.Options(namespaces, namespaceWorkers)
	work.LogConstructor = func(request *reconcile.Request) logr.Logger {
		logger := mgr.GetLogger().WithValues("controller", "namespace")
		if request != nil {
			logger = logger.WithValues("namespace", request.Name)
		}
		return logger
	}
	err = watchForNamespaces(ctrl.NewControllerManagedBy(mgr).Named("namespace"), mgr.GetClient(), options.OperatorNamespace).
		WithOptions(work).
		Complete(&namespaceReconciler{
			client:            mgr.GetClient(),
			configMaps:        &configMaps{cached: mgr.GetClient(), live: mgr.GetAPIReader(), own: newVersions()},
			renderings:        newRenderings(),
			guard:             guard,
			definitions:       definitions,
			restored:          restoration.err,
			baselines:         baselines,
			sealer:            sealer,
			weakened:          announcer.weakened,
			again:             func(namespace string) { namespaces.Add(requestFor("", namespace)) },
			operatorNamespace: options.OperatorNamespace,
			distributor:       distributor,
			board:             board,
			changed:           report,
			targets:           map[string]distribute.Target{},
			failed:            map[string]time.Time{},
			named:             map[string]named{},
		})
	if err != nil {
		return err
	}

	status := queue.Options(statuses, statusWorkers)
	status.Reconciler = &statusReconciler{
		client: mgr.GetClient(), board: board, tally: tally, distributor: distributor, propagator: propagator,
		announcer: announcer, pace: newPace(), own: newVersions(), cluster: clusterStatuses,
	}
	if _, err := controller.New("profile-status", mgr, status); err != nil {
		return err
	}
	return watchForClusterStatus(ctrl.NewControllerManagedBy(mgr).Named("cluster-profile-status")).
		WithOptions(queue.Options(clusterStatuses, clusterStatusWorkers)).
		Complete(&clusterStatusReconciler{
			client: mgr.GetClient(), tally: tally, distributor: distributor, propagator: propagator,
			announcer: announcer, pace: newPace(), own: newVersions(), operatorNamespace: options.OperatorNamespace,
			complete: map[string]int64{},
		})
}
