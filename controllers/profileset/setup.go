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
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// workers is how many namespaces are reconciled at a time.
const workers = 8

// Keys gives the keys that sets are signed with.
type Keys interface {
	Ring(ctx context.Context) (signing.Ring, error)
	// OnChange has f called after the keys changed; f must not block.
	OnChange(f func(context.Context))
}

// KeyGateway is what brokers have to know of the key gateway.
type KeyGateway interface {
	// Authorities returns the authorities of the gateway's certificate in PEM, nil while
	// there are none.
	Authorities() []byte
	// Looked reports whether this process has looked for the authorities, and has found them
	// or failed.
	Looked() bool
	// OnChange has f called after the authorities changed; f must not block.
	OnChange(f func(context.Context))
}

// Options configure the reconciler. All are required but MinimumStrength, KeyGateway, Audit and Traces.
type Options struct {
	// Namespaces is where the reconciler remembers namespaces, and publishes its
	// decisions.
	Namespaces *state.Store
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// MinimumStrength is the least strength in bits that a profile must have to be
	// served, 0 for none.
	MinimumStrength int
	// Keys are the keys that sets are signed with.
	Keys Keys
	// KeyGateway is the key gateway that brokers call, nil if there is none.
	KeyGateway KeyGateway
	// Queue has the namespaces to reconcile.
	Queue queue.Queue
	// Distributor brings sets into brokers.
	Distributor *distribute.Distributor
	// Decided is called after each decision about a namespace, and after the
	// namespace was forgotten. It must not block.
	Decided func(namespace string)
	// Metrics is where metrics are registered.
	Metrics prometheus.Registerer
	// Audit gets records of sets that changed and of profiles that became weaker, nil for
	// nowhere.
	Audit *audit.Log
	// Traces follows changes of profiles, nil for no traces.
	Traces *changetrace.Tracer
}

// Setup adds the reconciler to the manager. It runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	var (
		recorder    = mgr.GetEventRecorder(v1alpha1.FieldManager)
		namespaces  = options.Namespaces
		sealer      = newSealer(namespaces, mgr.GetClient(), options.Keys, options.Distributor.Revision)
		record      = newRecord(mgr.GetClient(), mgr.GetAPIReader(), options.OperatorNamespace)
		guard       = newGuard(namespaces, options.MinimumStrength, newBaselines(namespaces, sealer, record, recorder).read)
		restoration = newRestoration()
	)
	if err := errors.Join(options.Metrics.Register(namespaces), options.Metrics.Register(guard.weakened)); err != nil {
		return err
	}
	watchRestoration := func(ctx context.Context) error { return restoration.watch(ctx, mgr.GetCache()) }
	for _, run := range []manager.RunnableFunc{record.run, watchRestoration} {
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
			record:            record,
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
