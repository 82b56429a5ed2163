// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
	"github.com/crypto-broker/crypto-broker-operator/webhook/validation"
)

// Paths of the webhooks, as the webhook configurations name them.
const (
	podPath                  = "/mutate--v1-pod"
	cryptoProfilePath        = "/validate-cryptobroker-io-v1alpha1-cryptoprofile"
	clusterCryptoProfilePath = "/validate-cryptobroker-io-v1alpha1-clustercryptoprofile"
	keyProviderPath          = "/validate-cryptobroker-io-v1alpha1-keyprovider"
	clusterKeyProviderPath   = "/validate-cryptobroker-io-v1alpha1-clusterkeyprovider"
	keyAccessPolicyPath      = "/validate-cryptobroker-io-v1alpha1-keyaccesspolicy"
	keyAccessPeerPath        = "/validate-cryptobroker-io-v1alpha1-keyaccesspeer"
)

// The rights of the webhooks, which read and never write.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=crypto-broker-profiles,verbs=get;list;watch
// +kubebuilder:rbac:groups=cryptobroker.io,resources=cryptoprofiles;clustercryptoprofiles,verbs=list;watch

// Options configure the webhooks.
type Options struct {
	// Template is the template of all injected brokers.
	Template template.Template

	// OperatorNamespace is the operator's namespace. Its pods never get a broker, so the operator
	// can start while its webhook is down.
	OperatorNamespace string

	// Keys are the keys that sign the sets of profiles of namespaces. If it is nil, injected
	// brokers need no signature.
	Keys Keys

	// KeyAccessModules checks modules of KeyAccessPolicies in Rego. It is nil if Rego is off.
	KeyAccessModules validation.CheckModule

	// MinimumStrength is the minimum strength in bits of a profile, or 0.
	MinimumStrength int

	// Audit receives a record of each pod, and of each change of a profile, a key provider, or a
	// policy or peer of a key access service. It may be nil.
	Audit *audit.Log

	// Traces receives the admission of each change of a profile. It may be nil.
	Traces *changetrace.Tracer

	// Leaving is closed some seconds before the webhooks' server ends. From then on
	// answers ask the API server to call other replicas. If it is nil, they never do.
	Leaving <-chan struct{}
}

// Register adds the webhooks to the manager's webhook server. The
// manager's client has to read Namespaces, CryptoProfiles, ClusterCryptoProfiles
// and the ConfigMaps named crypto-broker-profiles from its cache, and its
// scheme has to know the types of Kubernetes' core and of api/v1alpha1.
func Register(mgr manager.Manager, options Options) error {
	if err := options.Template.Validate(); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if options.OperatorNamespace == "" {
		return errors.New("webhook: OperatorNamespace is empty, expected the operator's own namespace")
	}
	scheme := mgr.GetScheme()
	reviews, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if err := validation.Index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	validators := validation.Handlers(scheme, mgr.GetClient(), validation.Options{
		OperatorNamespace: options.OperatorNamespace,
		KeyAccessModules:  options.KeyAccessModules,
		MinimumStrength:   options.MinimumStrength,
		Review: func(ctx context.Context, review *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
			return reviews.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		},
		Live:   mgr.GetAPIReader(),
		Audit:  options.Audit,
		Traces: options.Traces,
	})
	injector := newPodInjector(admission.NewDecoder(scheme), mgr.GetClient(), mgr.GetAPIReader(), options)

	bodies, podWork, profileWork := shares.New(bodyShares), shares.New(podShares), shares.New(profileShares)
	for _, served := range []struct {
		path    string
		handler admission.Handler
		work    *shares.Shares
		least   int64
	}{
		{podPath, injector, podWork, leastPod},
		{cryptoProfilePath, validators.CryptoProfile, profileWork, leastProfile},
		{clusterCryptoProfilePath, validators.ClusterCryptoProfile, profileWork, leastProfile},
		{keyProviderPath, validators.KeyProvider, profileWork, leastProfile},
		{clusterKeyProviderPath, validators.ClusterKeyProvider, profileWork, leastProfile},
		{keyAccessPolicyPath, validators.KeyAccessPolicy, profileWork, leastProfile},
		{keyAccessPeerPath, validators.KeyAccessPeer, profileWork, leastProfile},
	} {
		mgr.GetWebhookServer().Register(served.path, leaving(options.Leaving, &bounded{
			next:   &admission.Webhook{Handler: brief(ofObjects(served.handler)), LogConstructor: logOfRequests},
			bodies: bodies,
			work:   served.work,
			least:  served.least,
			wait:   maxWait,
		}))
	}
	return nil
}

// logOfRequests returns the log for a request. A request that is no AdmissionReview is not
// logged, because anybody in the cluster could fill the log with such requests.
func logOfRequests(base logr.Logger, request *admission.Request) logr.Logger {
	if request == nil {
		return logr.Discard()
	}
	return admission.DefaultLogConstructor(base, request)
}

func newPodInjector(decoder admission.Decoder, cache, live client.Reader, options Options) *podInjector {
	return &podInjector{
		decoder:           decoder,
		source:            newSource(cache, live),
		keys:              options.Keys,
		template:          options.Template,
		operatorNamespace: options.OperatorNamespace,
		audit:             options.Audit,
	}
}
