// SPDX-License-Identifier: Apache-2.0

// Package certificates makes the serving certificates of the operator's webhook server, and gives
// the API server the certificates of their authorities, without cert-manager, mounted files or a
// restart.
//
// # How it works
//
// A certificate authority (ECDSA P-256, one year) lives in one Secret of the operator's
// namespace. The first replica makes it. Every replica signs its own serving certificate with it
// (ECDSA P-256, 24 hours, renewed after two thirds). The private key exists only in the memory of
// the replica. Every replica keeps the caBundle of each webhook in the two webhook configurations
// equal to the trusted authorities of the Secret. No leader is needed, because each write is
// conditional on the version that was read before it.
//
// # Rotation
//
// Two months before the authority expires its successor is made and put into
// the bundle. It signs nothing until it has been in the bundles of both
// configurations for a day, so that every API server has seen it. Then it
// takes over, its predecessor's key is deleted, and the predecessor's
// certificate stays in the bundle until the last serving certificate it can
// have signed has expired. Two rules hold at every step: no certificate is
// served before its authority is in all bundles, and no authority leaves a
// bundle while a certificate that it signed may still be served. An authority
// that is not valid yet, because it was made while a clock was ahead, is
// replaced at once.
//
// # When things go wrong
//
// A deleted Secret is made again with a new authority; what the bundles still
// hold stays trusted for as long as serving certificates of it may live. A
// Secret that can't be read is repaired the same way, with a log line that
// says which entry was wrong. A caBundle that somebody empties is filled
// again at once. To distrust an authority immediately (its key leaked), delete
// the Secret and empty the caBundle of both configurations.
//
// # Key gateways
//
// An [Issuer] makes the certificates of key gateways by the same rules. These servers are
// other processes, so their certificate is in a Secret, and lives for 30 days. The bundle
// that their clients trust is published by the caller.
//
// # Use
//
//	certs, err := certificates.New(mgr.GetConfig(), certificates.Options{…})
//	server := server.New(server.Options{TLS: certs.TLSOption})
//	err = mgr.Add(certs)                           // runs on every replica
//	err = mgr.AddReadyzCheck("certificates", certs.Ready)
//
// # Rights
//
// In the operator's namespace: secrets create (no name can be given for
// create), and get, list, watch, update on the one Secret by resourceNames.
// In the cluster: mutatingwebhookconfigurations and
// validatingwebhookconfigurations get, list, watch, patch, each on the one
// object by resourceNames. List and watch select by metadata.name, which is
// what lets resourceNames match them.
package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
)

// The rights that Certificates needs, with the names of a default installation. The
// chart replaces the names.
//
// +kubebuilder:rbac:groups="",namespace=crypto-broker-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=crypto-broker-system,resources=secrets,resourceNames=crypto-broker-operator-ca,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=crypto-broker-operator,verbs=get;list;watch;patch

// Certificates keeps the authority, this replica's serving certificate and the
// caBundles. It is made by New and works while Start runs.
type Certificates struct {
	options Options
	clock   clock.Clock
	client  client.Client
	watch   watcher
	log     logr.Logger

	// leafAuthority has signed leaf. missing has the kinds of configurations that did not exist
	// in the last pass. Only the loop of Start uses both.
	leafAuthority *x509.Certificate
	missing       map[string]bool

	mu sync.RWMutex
	// leaf is the serving certificate. It is nil until the first authority is trusted.
	leaf *tls.Certificate
	// problem is the error of the last pass, or nil.
	problem error
}

var (
	_ manager.Runnable               = &Certificates{}
	_ manager.LeaderElectionRunnable = &Certificates{}
	_ healthz.Checker                = (&Certificates{}).Ready
)

// errNotStarted is the error of Ready before the first pass has ended.
var errNotStarted = errors.New("certificates: not read yet")

// New checks the options and prepares the clients. It makes no requests. cfg is the operator's
// own access to the API server.
func New(cfg *rest.Config, options Options) (*Certificates, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	scheme := newScheme()
	direct, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("certificates: prepare a client: %w", err)
	}
	watch, err := objectwatch.New(cfg, scheme,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: options.Namespace, Name: options.SecretName}},
		mutating(options.MutatingConfiguration).object,
		validating(options.ValidatingConfiguration).object)
	if err != nil {
		return nil, fmt.Errorf("certificates: prepare the watches: %w", err)
	}
	return newCertificates(direct, watch, options), nil
}

// watcher is an [objectwatch.Watcher] of the Secret and of the two configurations.
type watcher interface {
	Start(ctx context.Context) (<-chan struct{}, error)
	Wait() error
}

func newCertificates(direct client.Client, watch watcher, options Options) *Certificates {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Certificates{
		options: options,
		clock:   options.Clock,
		client:  direct,
		watch:   watch,
		log:     log.Log.WithName("certificates"),
		problem: errNotStarted,
		missing: map[string]bool{},
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	return scheme
}

// TLSOption makes a TLS server use the current certificate, and only TLS 1.3, because its only
// caller is the API server.
func (c *Certificates) TLSOption(config *tls.Config) {
	config.MinVersion = tls.VersionTLS13
	config.GetCertificate = c.GetCertificate
}

// GetCertificate returns the serving certificate. If there is none that the API server would
// accept, the error says why.
func (c *Certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := c.servable(); err != nil {
		return nil, err
	}
	return c.leaf, nil
}

// Ready returns nil while the caBundle of every webhook has the authority of the serving
// certificate. One of the two configurations may be missing. Otherwise the error says what is
// missing.
func (c *Certificates) Ready(*http.Request) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := c.servable(); err != nil {
		return err
	}
	return c.problem
}

// servable returns why there is no certificate to serve, or nil if there is one. The caller holds
// mu.
func (c *Certificates) servable() error {
	switch {
	case c.leaf == nil && c.problem != nil:
		return c.problem
	case c.leaf == nil:
		return errNotStarted
	case expired(c.leaf.Leaf, c.clock.Now()):
		return errors.Join(fmt.Errorf("certificates: the serving certificate expired at %s and was not renewed",
			c.leaf.Leaf.NotAfter.UTC().Format(time.RFC3339)), c.problem)
	}
	return nil
}

// NeedLeaderElection returns false: every replica serves, so every replica
// needs a certificate.
func (c *Certificates) NeedLeaderElection() bool { return false }

// Start keeps Secret, bundles and serving certificate current until ctx ends. It returns
// an error only if the watches cannot be set up. A later error is logged, becomes the
// error of Ready, and Start tries again.
func (c *Certificates) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	changes, err := c.watch.Start(ctx)
	if err != nil {
		err = fmt.Errorf("certificates: start the watches: %w", err)
	} else {
		c.loop(ctx, changes)
	}
	cancel()
	return errors.Join(err, c.watch.Wait())
}

// loop makes a pass at the beginning, after each change, and when a renewal or a rotation is due.
func (c *Certificates) loop(ctx context.Context, changes <-chan struct{}) {
	retry := objectwatch.NewBackoff()
	for ctx.Err() == nil {
		next, err := c.synchronise(ctx)
		var wait time.Duration
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			retry = objectwatch.NewBackoff()
			wait = min(max(next.Sub(c.clock.Now()), shortestWait), longestWait)
		case objectwatch.IsRace(err):
			// Another replica was faster. The next pass reads the result.
			wait = retry.Step()
		default:
			wait = retry.Step()
			c.log.Error(err, "the webhook's certificates are not in order", "retryIn", wait.String())
		}
		timer := c.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changes:
		case <-timer.C():
		}
		timer.Stop()
	}
}
