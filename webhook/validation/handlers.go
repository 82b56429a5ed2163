// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
)

// Reviewer asks the API server whether a user has a right.
type Reviewer func(context.Context, *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error)

// Options are the settings of the handlers.
type Options struct {
	// OperatorNamespace is the operator's namespace, which never gets profiles. The key access
	// service of the chart runs in it.
	OperatorNamespace string

	// KeyAccessModules checks modules of KeyAccessPolicies in Rego. It is nil if Rego is off.
	KeyAccessModules CheckModule

	// MinimumStrength is the minimum strength in bits of a profile, or 0.
	MinimumStrength int

	// Review asks the API server who may make a profile weaker.
	Review Reviewer

	// Live reads key providers from the API server.
	Live client.Reader

	// Audit receives a record of each change. It may be nil.
	Audit *audit.Log

	// Traces receives the admission of each change of a profile. It may be nil.
	Traces *changetrace.Tracer
}

// Validators are the handlers of each kind.
type Validators struct {
	CryptoProfile, ClusterCryptoProfile, KeyProvider, ClusterKeyProvider, KeyAccessPolicy, KeyAccessPeer admission.Handler
}

// Handlers returns the handlers. The reader reads Namespaces, profiles and their ConfigMaps
// from a cache with the index of Index, and the scheme knows their types.
func Handlers(scheme *runtime.Scheme, reader client.Reader, options Options) Validators {
	guard, decoder := newGuard(reader, options), admission.NewDecoder(scheme)
	keys := &keyProviders{live: options.Live, namespaces: reader, operatorNamespace: options.OperatorNamespace}
	valid := admission.WithValidator(scheme, newCryptoProfileValidator(reader, keys))
	validCluster := admission.WithValidator(scheme, newClusterCryptoProfileValidator(reader, keys))
	return Validators{
		CryptoProfile:        audited(options.Audit, traced(options.Traces, counted(guardedBy(guard, decoder, &v1alpha1.CryptoProfile{}, valid.Handler)))),
		ClusterCryptoProfile: audited(options.Audit, traced(options.Traces, counted(guardedBy(guard, decoder, &v1alpha1.ClusterCryptoProfile{}, validCluster.Handler)))),
		KeyProvider:          audited(options.Audit, admission.WithValidator(scheme, newKeyProviderValidator(keys)).Handler),
		ClusterKeyProvider:   audited(options.Audit, admission.WithValidator(scheme, newClusterKeyProviderValidator(keys)).Handler),
		KeyAccessPolicy:      audited(options.Audit, admission.WithValidator(scheme, newKeyAccessPolicyValidator(options.OperatorNamespace, options.KeyAccessModules)).Handler),
		KeyAccessPeer:        audited(options.Audit, admission.WithValidator(scheme, newKeyAccessPeerValidator(options.OperatorNamespace)).Handler),
	}
}
