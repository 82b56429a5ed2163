// SPDX-License-Identifier: Apache-2.0

package brokercertificates

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
)

const (
	// longest is how long a certificate is valid at most. The API server allows no less than an hour.
	longest = 24 * time.Hour
	// skew is how far the clock of a gateway may be behind. The API server allows a certificate to
	// begin five minutes ago.
	skew = 3 * time.Minute
	// concurrent is the number of requests that are signed at one time.
	concurrent = 4
	// authorityPause is the time between two tries before the authority is known.
	authorityPause = time.Second
)

// Reasons of conditions. [certificatesv1.PodCertificateRequestConditionUnsupportedKeyType] and
// [certificatesv1.PodCertificateRequestConditionInvalidUserConfig] are the other ones.
const (
	reasonIssued     = "Issued"
	reasonUnreadable = "UnreadableRequest"
)

// Signer signs certificates for clients of key gateways, see [certificates.Issuer.SignClient].
type Signer interface {
	SignClient(public crypto.PublicKey, name *url.URL, notBefore, notAfter time.Time) (*x509.Certificate, error)
}

// Options of the reconciler.
type Options struct {
	Signer Signer
	// Clock is the real clock if it is absent. Tests set another one.
	Clock clock.PassiveClock
	// Audit receives a record of each certificate. It may be nil.
	Audit *audit.Log
}

// CacheOptions returns the options that the manager's cache must have for PodCertificateRequests.
// It does not read requests of other signers.
func CacheOptions() cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("spec.signerName", contract.BrokerSigner)}
}

// Setup adds the reconciler to the manager. It runs on the leader.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("broker-certificates").
		For(&certificatesv1.PodCertificateRequest{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(&reconciler{client: mgr.GetClient(), options: options})
}

type reconciler struct {
	client  client.Client
	options Options
}

// Reconcile decides a request that has no decision yet. The API server refuses a second decision.
func (r *reconciler) Reconcile(ctx context.Context, name reconcile.Request) (reconcile.Result, error) {
	request := &certificatesv1.PodCertificateRequest{}
	if err := r.client.Get(ctx, name.NamespacedName, request); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if request.Spec.SignerName != contract.BrokerSigner || len(request.Status.Conditions) > 0 {
		return reconcile.Result{}, nil
	}
	request = request.DeepCopy()
	certificate, err := r.decide(request)
	if errors.Is(err, certificates.ErrNoAuthority) {
		return reconcile.Result{RequeueAfter: authorityPause}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	err = r.client.Status().Update(ctx, request)
	if apierrors.IsConflict(err) {
		return reconcile.Result{}, nil // a newer version comes by the watch
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	condition := request.Status.Conditions[0]
	attributes := []any{"pod", request.Spec.PodName, "node", request.Spec.NodeName, "reason", condition.Reason}
	if certificate == nil {
		log.FromContext(ctx).Info("refused a certificate for the broker of a pod", append(attributes, "message", condition.Message)...)
		return reconcile.Result{}, nil
	}
	r.options.Audit.AddEvent(certificates.SignedForPod(request.Namespace, request.Spec.PodName, certificate))
	log.FromContext(ctx).V(1).Info("signed a certificate for the broker of a pod", append(attributes, "expiry", certificate.NotAfter.UTC().Format(time.RFC3339))...)
	return reconcile.Result{}, nil
}

// decide writes the decision into the status of a request. It returns no certificate for a request
// that it refuses.
func (r *reconciler) decide(request *certificatesv1.PodCertificateRequest) (*x509.Certificate, error) {
	if len(request.Spec.UnverifiedUserAnnotations) > 0 {
		r.conclude(request, certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionInvalidUserConfig,
			"The source podCertificate has userAnnotations, expected none: "+contract.BrokerSigner+" knows none.")
		return nil, nil
	}
	public := publicKey(request.Spec.StubPKCS10Request)
	if public == nil {
		r.conclude(request, certificatesv1.PodCertificateRequestConditionTypeFailed, reasonUnreadable, "The field spec.stubPKCS10Request cannot be read, expected PKCS #10.")
		return nil, nil
	}
	if key, ok := public.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		r.conclude(request, certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionUnsupportedKeyType,
			"The key has another type, expected ECDSAP256.")
		return nil, nil
	}
	lifetime := longest
	if most := request.Spec.MaxExpirationSeconds; most != nil {
		lifetime = min(lifetime, time.Duration(*most)*time.Second)
	}
	// Certificates have times of whole seconds.
	begin := r.options.Clock.Now().Add(-skew).Truncate(time.Second)
	name := contract.BrokerURI(request.Namespace, request.Spec.PodName, string(request.Spec.PodUID))
	certificate, err := r.options.Signer.SignClient(public, name, begin, begin.Add(lifetime))
	if err != nil {
		return nil, err
	}
	r.conclude(request, certificatesv1.PodCertificateRequestConditionTypeIssued, reasonIssued, "The operator of Crypto Broker has signed the certificate.")
	request.Status.CertificateChain = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	request.Status.NotBefore, request.Status.NotAfter = new(metav1.NewTime(certificate.NotBefore)), new(metav1.NewTime(certificate.NotAfter))
	request.Status.BeginRefreshAt = new(metav1.NewTime(begin.Add(lifetime / 3)))
	return certificate, nil
}

// publicKey returns the key of a request in PKCS #10, or nil if it is not valid. The API server
// has verified that the requester has the private key.
func publicKey(request []byte) crypto.PublicKey {
	stub, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil
	}
	return stub.PublicKey
}

func (r *reconciler) conclude(request *certificatesv1.PodCertificateRequest, condition, reason, message string) {
	request.Status.Conditions = []metav1.Condition{{
		Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(r.options.Clock.Now()),
	}}
}
