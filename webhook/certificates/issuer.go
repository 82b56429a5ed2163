// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// Entries of the Secret with a serving certificate. A Secret of the type kubernetes.io/tls
// has the first two.
const (
	servingCertificateEntry = corev1.TLSCertKey
	servingKeyEntry         = corev1.TLSPrivateKeyKey
	servingBundleEntry      = "ca.crt"
)

// Issuer makes and renews the serving certificate of key gateways, which read it from a Secret.
// The authority is in another Secret, which no pod mounts. One replica at a time should use an
// Issuer. A second one does no harm, because each write is conditional on the version that was
// read before it.
type Issuer struct {
	authorities authoritySecret
	// serving is the name of the Secret with the serving certificate, its key and the bundle.
	serving client.ObjectKey
	names   []string
	// signing is the authority that signs for clients. It is nil before Renew has succeeded.
	signing atomic.Pointer[authority]
}

// NewIssuer returns an Issuer for a Service. The Secrets are "<service>-ca" and "<service>-tls"
// in its namespace. records receives audit records of the Issuer's certificates. It may be nil.
func NewIssuer(direct client.Client, clock clock.Clock, log logr.Logger, records *audit.Log, service client.ObjectKey) *Issuer {
	authority, serving := IssuerSecrets(service)
	return &Issuer{
		authorities: authoritySecret{purpose: gatewayServing, client: direct, clock: clock, log: log, name: authority, audit: records},
		serving:     serving,
		names:       []string{service.Name + "." + service.Namespace + ".svc"},
	}
}

// IssuerSecrets returns the names of the Secrets with the authority and with the serving
// certificate of a Service.
func IssuerSecrets(service client.ObjectKey) (authority, serving client.ObjectKey) {
	authority, serving = service, service
	authority.Name += "-ca"
	serving.Name += "-tls"
	return authority, serving
}

// Renew makes both Secrets current, and returns the time of the next call. published are the
// authorities in PEM that clients can have at this moment. Renew calls publish with the
// authorities that they must have from now on. It signs nothing before publish has succeeded. If
// objectwatch.IsRace reports true for the error, another process wrote at the same time.
func (i *Issuer) Renew(ctx context.Context, published []byte, publish func(ctx context.Context, bundle []byte) error) (next time.Time, err error) {
	known := parseBundle(published)
	state, err := i.authorities.advance(ctx, known, func(certificate *x509.Certificate) bool { return contains(known, certificate) })
	if state == nil {
		return time.Time{}, err
	}
	bundle := encodeCertificates(state.trusted()...)
	if err := publish(ctx, bundle); err != nil {
		return time.Time{}, err
	}
	i.signing.Store(state.current)
	registerExpiry("key-gateway-ca", state.current.certificate)
	leaf, leafErr := i.renewLeaf(ctx, state, bundle)
	if leafErr != nil {
		return time.Time{}, errors.Join(err, leafErr)
	}
	registerExpiry("key-gateway", leaf)
	next = state.deadline()
	for _, at := range []time.Time{renewal(leaf), state.current.made().Add(settle)} {
		if at.After(i.authorities.clock.Now()) && at.Before(next) {
			next = at
		}
	}
	return next, err
}

// renewLeaf reads the Secret with the serving certificate, and writes a new certificate if one is
// due. It returns the certificate that the Secret has afterwards.
func (i *Issuer) renewLeaf(ctx context.Context, state *authorities, bundle []byte) (*x509.Certificate, error) {
	secret := &corev1.Secret{}
	err := i.authorities.client.Get(ctx, i.serving, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read the Secret %s: %w", i.serving, err)
	}
	leaf, reason := i.usable(secret, state)
	if reason == "" && bytes.Equal(secret.Data[servingBundleEntry], bundle) {
		return leaf, nil
	}
	data := map[string][]byte{
		servingCertificateEntry: secret.Data[servingCertificateEntry], servingKeyEntry: secret.Data[servingKeyEntry], servingBundleEntry: bundle,
	}
	if reason != "" {
		made, err := state.current.newLeaf(i.authorities.clock.Now(), i.authorities.purpose, i.names, nil)
		if err != nil {
			return nil, err
		}
		leaf = made.Leaf
		if data[servingCertificateEntry], data[servingKeyEntry], err = encode(leaf, made.PrivateKey); err != nil {
			return nil, err
		}
	}
	secret.Data = data
	if missing {
		secret.Namespace, secret.Name, secret.Type = i.serving.Namespace, i.serving.Name, corev1.SecretTypeTLS
		err = i.authorities.client.Create(ctx, secret, client.FieldOwner(fieldManager))
	} else {
		err = i.authorities.client.Update(ctx, secret, client.FieldOwner(fieldManager))
	}
	if err != nil {
		return nil, fmt.Errorf("write the Secret %s: %w", i.serving, err)
	}
	if reason != "" {
		i.authorities.audit.AddEvent(certificateEvent(certificateSigned, i.serving, leaf).Text("reason", reason))
		i.authorities.log.Info("signed a serving certificate", "secret", i.serving.String(), "names", i.names, "expiry", leaf.NotAfter.UTC().Format(time.RFC3339), "reason", reason)
	}
	return leaf, nil
}

// usable returns the certificate in a Secret, and the reason why a new one is due, which is empty
// if none is due. A certificate of an earlier authority that clients still trust remains usable
// until clients have had time to get the current authority.
func (i *Issuer) usable(secret *corev1.Secret, state *authorities) (*x509.Certificate, string) {
	pair, err := tls.X509KeyPair(secret.Data[servingCertificateEntry], secret.Data[servingKeyEntry])
	if err != nil {
		return nil, "there is no readable certificate with its key" // the error could quote a broken key
	}
	leaf, now := pair.Leaf, i.authorities.clock.Now()
	signedBy := func(authority *x509.Certificate) bool {
		return valid(authority, now) && leaf.CheckSignatureFrom(authority) == nil
	}
	ofCurrent := signedBy(state.current.certificate)
	switch {
	case !slices.ContainsFunc(state.trusted(), signedBy):
		return leaf, "its authority is not trusted or not valid"
	case !slices.Equal(leaf.DNSNames, i.names):
		return leaf, "it has other names than the Service"
	case expired(leaf, now):
		return leaf, "it has expired"
	case now.Before(leaf.NotBefore):
		return leaf, "it is not valid yet, because the clock was ahead"
	case !ofCurrent && !now.Before(state.current.made().Add(settle)):
		return leaf, "there is a new authority"
	case !now.Before(renewal(leaf)) && (!ofCurrent || leaf.NotAfter.Before(state.current.certificate.NotAfter)):
		// A certificate does not outlive its authority, so a new certificate would not be valid
		// longer than one that ends with the authority.
		return leaf, "two thirds of its time are over"
	}
	return leaf, ""
}
