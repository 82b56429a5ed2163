// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/profileset/internal/record"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// workers is the number of namespaces that are reconciled at a time.
const workers = 8

// Keys provides the keys that sign sets.
type Keys interface {
	Ring(ctx context.Context) (signing.Ring, error)
	// OnChange makes f be called after each change of the keys. f must not block.
	OnChange(f func(context.Context))
}

// KeyGateway provides the facts about the key gateway that brokers need.
type KeyGateway interface {
	// Authorities returns the authorities of the gateway's certificate in PEM, or nil while there
	// are none.
	Authorities() []byte
	// Looked reports whether this process has tried to read the authorities, with success or
	// without.
	Looked() bool
	// OnChange makes f be called after each change of the authorities. f must not block.
	OnChange(f func(context.Context))
}

// Options configure the reconciler. All are required but MinimumStrength, KeyGateway, Audit and Traces.
type Options struct {
	// Namespaces is the store in which the reconciler remembers namespaces and publishes its
	// decisions.
	Namespaces *state.Store
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// MinimumStrength is the minimum strength in bits of a served profile, or 0.
	MinimumStrength int
	// Keys are the keys that sign sets.
	Keys Keys
	// KeyGateway is the key gateway that brokers call, or nil.
	KeyGateway KeyGateway
	// Queue has the namespaces to reconcile.
	Queue queue.Queue
	// Distributor brings sets into brokers.
	Distributor *distribute.Distributor
	// Decided is called after each decision about a namespace, and after the
	// namespace was forgotten. It must not block.
	Decided func(namespace string)
	// Metrics is the registry of metrics.
	Metrics prometheus.Registerer
	// Audit receives records of changed sets and of profiles that became weaker. It may be nil.
	Audit *audit.Log
	// Traces follows changes of profiles. It may be nil.
	Traces *changetrace.Tracer
}

// Setup adds the reconciler to the manager. It runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	var (
		recorder    = mgr.GetEventRecorder(v1alpha1.FieldManager)
		namespaces  = options.Namespaces
		sealer      = newSealer(namespaces, mgr.GetClient(), options.Keys, options.Distributor.Revision)
		given       = record.New(mgr.GetClient(), mgr.GetAPIReader(), options.OperatorNamespace)
		guard       = newGuard(namespaces, options.MinimumStrength, newBaselines(namespaces, sealer, given, recorder).read)
		restoration = newRestoration()
	)
	if err := errors.Join(options.Metrics.Register(namespaces), options.Metrics.Register(guard.weakened)); err != nil {
		return err
	}
	watchRestoration := func(ctx context.Context) error { return restoration.watch(ctx, mgr.GetCache()) }
	for _, run := range []manager.RunnableFunc{given.Run, watchRestoration} {
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	requestAll := func(context.Context) { options.Queue.Add(queue.Request(everyNamespace)) }
	options.Keys.OnChange(requestAll)
	if options.KeyGateway != nil {
		options.KeyGateway.OnChange(requestAll)
	}

	controller := queue.Options(options.Queue, workers)
	controller.LogConstructor = func(request *reconcile.Request) logr.Logger {
		logger := mgr.GetLogger().WithValues("controller", "namespace")
		if request != nil {
			logger = logger.WithValues("namespace", request.Name)
		}
		return logger
	}
	return watchForNamespaces(ctrl.NewControllerManagedBy(mgr).Named("namespace"), mgr.GetClient(), options.OperatorNamespace, options.Traces).
		WithOptions(controller).
		Complete(&reconciler{
			client:            mgr.GetClient(),
			recorder:          recorder,
			namespaces:        namespaces,
			configMaps:        &configMaps{cached: mgr.GetClient(), live: mgr.GetAPIReader(), namespaces: namespaces},
			renderings:        newRenderings(),
			guard:             guard,
			definitions:       &definitions{namespaces: namespaces, live: mgr.GetAPIReader(), recorder: recorder},
			sealer:            sealer,
			record:            given,
			restored:          restoration.err,
			queue:             options.Queue,
			keyGateway:        options.KeyGateway,
			operatorNamespace: options.OperatorNamespace,
			distributor:       options.Distributor,
			decided:           options.Decided,
			audit:             options.Audit,
			traces:            options.Traces,
		})
}
