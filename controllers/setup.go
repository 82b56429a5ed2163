// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/profileset"
	"github.com/crypto-broker/crypto-broker-operator/controllers/rollout"
	"github.com/crypto-broker/crypto-broker-operator/controllers/status"
)

// Keys provides the keys that sign sets.
type Keys = profileset.Keys

// KeyGateway provides the facts about the key gateway that brokers need.
type KeyGateway = profileset.KeyGateway

// Options configure the reconcilers.
type Options struct {
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// StatusPort is the port that injected brokers answer on, for messages.
	StatusPort int32
	// Annotate reports whether pods are annotated to make their kubelets refresh
	// the profiles at once.
	Annotate bool
	// Ask asks a broker which set it serves.
	Ask func(context.Context, netip.AddrPort) (confirm.Answer, error)
	// AskGateway asks a key gateway for the state of the key providers, and a key access
	// service for the state of its policies and peers.
	AskGateway keyproviders.Ask
	// Outdated reports whether a new pod would get another broker than a pod has. It is nil if
	// that is not known.
	Outdated func(*corev1.Pod) bool
	// MinimumStrength is the minimum strength in bits of a served profile, or 0.
	MinimumStrength int
	// Keys are the keys that sign sets.
	Keys Keys
	// KeyGateway is the key gateway that brokers call, or nil.
	KeyGateway KeyGateway
	// Metrics is the registry of metrics.
	Metrics prometheus.Registerer
	// Audit receives records of changed sets and of profiles that became weaker. It may be nil.
	Audit *audit.Log
	// Traces follows changes of profiles to the last broker. It may be nil.
	Traces *changetrace.Tracer
}

// CacheOptions returns the options of the manager's cache. Pods are stripped to the fields that
// are read. Only ConfigMaps with profiles are read. Policies and peers of the key access service
// are read only in the operator's namespace, because the operator may read no others.
func CacheOptions(operatorNamespace string) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      distribute.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:               {Transform: distribute.StripPod},
			&v1alpha1.KeyAccessPolicy{}: {Namespaces: map[string]cache.Config{operatorNamespace: {}}},
			&v1alpha1.KeyAccessPeer{}:   {Namespaces: map[string]cache.Config{operatorNamespace: {}}},
			&corev1.ConfigMap{}: {
				Field:     fields.OneTermEqualSelector("metadata.name", v1alpha1.ProfilesConfigMap),
				Transform: profileset.ShareTexts(),
			},
		},
	}
}

// Setup adds the reconcilers to the manager. The manager's cache must be made with
// [CacheOptions]. The reconcilers run on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.OperatorNamespace == "" {
		return errors.New("the operator's namespace is not known")
	}
	if options.Keys == nil {
		return errors.New("there are no keys to sign sets with")
	}
	var (
		namespaces = state.NewStore()
		sets       = queue.New("namespace")
		statuses   = queue.New("profile-status")
		rollouts   = queue.New("rollout")
	)
	distributor, err := distribute.Setup(mgr, distribute.Options{
		Annotate: options.Annotate,
		Ask:      options.Ask,
		Outdated: options.Outdated,
		Changed: func(namespace string) {
			status.Request(statuses, namespace)
			if known, _ := namespaces.Get(namespace); known.Decision != nil && known.Decision.Emptied {
				// The empty set is removed after the last broker.
				sets.Add(queue.Request(namespace))
			}
		},
		RevisionAhead: func(namespace string) { sets.Add(queue.Request(namespace)) },
		Traces:        options.Traces,
	})
	if err != nil {
		return err
	}
	if err := distributor.Register(options.Metrics); err != nil {
		return err
	}
	err = profileset.Setup(mgr, profileset.Options{
		Namespaces:        namespaces,
		OperatorNamespace: options.OperatorNamespace,
		MinimumStrength:   options.MinimumStrength,
		Keys:              options.Keys,
		KeyGateway:        options.KeyGateway,
		Queue:             sets,
		Distributor:       distributor,
		Decided: func(namespace string) {
			status.Request(statuses, namespace)
			known, _ := namespaces.Get(namespace)
			rollout.Request(rollouts, namespace, known.Decision)
		},
		Metrics: options.Metrics,
		Audit:   options.Audit,
		Traces:  options.Traces,
	})
	if err != nil {
		return err
	}
	err = rollout.Setup(mgr, rollout.Options{
		Namespaces:        namespaces,
		OperatorNamespace: options.OperatorNamespace,
		Queue:             rollouts,
		Distributor:       distributor,
		Changed:           func(namespace string) { status.Request(statuses, namespace) },
		Metrics:           options.Metrics,
		Audit:             options.Audit,
	})
	if err != nil {
		return err
	}
	err = status.Setup(mgr, status.Options{
		Namespaces:        namespaces,
		OperatorNamespace: options.OperatorNamespace,
		StatusPort:        options.StatusPort,
		Annotate:          options.Annotate,
		Queue:             statuses,
		Distributor:       distributor,
		Metrics:           options.Metrics,
	})
	if err != nil {
		return err
	}
	asking := keyproviders.Options{
		OperatorNamespace: options.OperatorNamespace,
		Ask:               options.AskGateway,
		Interval:          keyproviders.DefaultInterval,
		Metrics:           options.Metrics,
	}
	return errors.Join(keyproviders.Setup(mgr, asking), keyproviders.SetupKeyAccess(mgr, asking))
}
