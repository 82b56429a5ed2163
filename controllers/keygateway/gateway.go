// SPDX-License-Identifier: Apache-2.0

package keygateway

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
)

// Entries of the ConfigMap.
const (
	trustedKeysEntry = "trusted-keys"
	authoritiesEntry = "ca.crt"
)

// port is the port of the Service.
const port = "443"

// Bounds of the wait for the next pass if nothing changes.
const (
	shortestWait = 10 * time.Second
	longestWait  = 5 * time.Minute
)

// Keys are the operator's signing keys.
type Keys interface {
	Ring(ctx context.Context) (signing.Ring, error)
}

// Options are the settings of a Gateway. All are required, except for Clock and Audit.
type Options struct {
	// Namespace is the operator's namespace, and Service is the name of the Service in it.
	Namespace, Service string
	// Keys are the keys that sign sets of profiles.
	Keys Keys
	// Clock is the real clock if it is absent. Tests set another one.
	Clock clock.Clock
	// Audit receives a record of each certificate that is made. It may be nil.
	Audit *audit.Log
}

// Gateway maintains the objects for the key gateways of one Service. A nil Gateway means that
// there are no gateways. Its methods Address and Authorities may be called on nil.
type Gateway struct {
	options Options
	client  client.Client
	watches []*objectwatch.Watcher
	issuer  *certificates.Issuer
	log     logr.Logger
	poked   chan struct{}

	authorities atomic.Pointer[[]byte]
	looked      atomic.Bool
	onChange    []func(context.Context)
}

var (
	_ manager.Runnable               = &Gateway{}
	_ manager.LeaderElectionRunnable = &Gateway{}
)

// New prepares the clients. It does not call the API server.
func New(cfg *rest.Config, options Options) (*Gateway, error) {
	if options.Namespace == "" || options.Service == "" || options.Keys == nil {
		return nil, fmt.Errorf("key gateway: found the Service %q in the namespace %q, expected both, and signing keys", options.Service, options.Namespace)
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	direct, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("key gateway: prepare a client: %w", err)
	}
	service := client.ObjectKey{Namespace: options.Namespace, Name: options.Service}
	authority, serving := certificates.IssuerSecrets(service)
	g := &Gateway{options: options, client: direct, log: log.Log.WithName("key-gateway"), poked: make(chan struct{}, 1)}
	g.issuer = certificates.NewIssuer(direct, options.Clock, g.log, options.Audit, service)
	// One watcher cannot have two objects of the same type.
	for _, objects := range [][]client.Object{
		{secretOf(authority), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}},
		{secretOf(serving)},
	} {
		watch, err := objectwatch.New(cfg, scheme, objects...)
		if err != nil {
			return nil, fmt.Errorf("key gateway: prepare the watches: %w", err)
		}
		g.watches = append(g.watches, watch)
	}
	return g, nil
}

func secretOf(name client.ObjectKey) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
}

// Address returns HOST:PORT at which brokers reach gateways, or an empty text if there are
// none.
func (g *Gateway) Address() string {
	if g == nil {
		return ""
	}
	return Address(g.options.Namespace, g.options.Service)
}

// Address returns HOST:PORT of the gateways of a Service, or an empty text for no Service.
func Address(namespace, service string) string {
	if service == "" {
		return ""
	}
	return service + "." + namespace + ".svc:" + port
}

// Authorities returns the authorities in PEM that brokers have to trust now. It returns nil
// if there are no gateways, and before the first pass of Start. Only the leader knows them.
func (g *Gateway) Authorities() []byte {
	if g == nil {
		return nil
	}
	if bundle := g.authorities.Load(); bundle != nil {
		return *bundle
	}
	return nil
}

// Looked reports whether Start has tried to read the authorities, with success or without.
func (g *Gateway) Looked() bool { return g.looked.Load() }

// OnChange makes f be called after the result of Authorities has changed. It must be called
// before Start.
func (g *Gateway) OnChange(f func(context.Context)) {
	g.onChange = append(g.onChange, f)
}

// KeysChanged publishes the signing keys again.
func (g *Gateway) KeysChanged() {
	select {
	case g.poked <- struct{}{}:
	default:
	}
}

// SignClient signs a certificate for a client of the gateways, see
// [certificates.Issuer.SignClient]. Only the leader can.
func (g *Gateway) SignClient(public crypto.PublicKey, name *url.URL, notBefore, notAfter time.Time) (*x509.Certificate, error) {
	return g.issuer.SignClient(public, name, notBefore, notAfter)
}

// NeedLeaderElection returns true: the leader alone writes the objects.
func (g *Gateway) NeedLeaderElection() bool { return true }

// Start keeps the objects current until ctx ends. It returns an error only if the watches
// cannot be set up. A later error is logged, and Start tries again.
func (g *Gateway) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	changes := make([]<-chan struct{}, len(g.watches))
	var failures []error
	for i, watch := range g.watches {
		var err error
		if changes[i], err = watch.Start(ctx); err != nil {
			failures = append(failures, fmt.Errorf("key gateway: start the watches: %w", err))
		}
	}
	if len(failures) == 0 {
		g.loop(ctx, changes[0], changes[1])
	}
	cancel()
	for _, watch := range g.watches {
		failures = append(failures, watch.Wait())
	}
	return errors.Join(failures...)
}

func (g *Gateway) loop(ctx context.Context, first, second <-chan struct{}) {
	retry := objectwatch.NewBackoff()
	for ctx.Err() == nil {
		next, err := g.pass(ctx)
		var pause time.Duration
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			retry = objectwatch.NewBackoff()
			pause = min(max(next.Sub(g.options.Clock.Now()), shortestWait), longestWait)
		case objectwatch.IsRace(err):
			pause = retry.Step() // somebody else was faster; the next pass reads what they wrote
		default:
			g.looked.Store(true)
			pause = retry.Step()
			g.log.Error(err, "the objects of the key gateway are not in order", "retryIn", pause.String())
		}
		timer := g.options.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-first:
		case <-second:
		case <-g.poked:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// pass makes all objects current, and returns the time of the next pass.
func (g *Gateway) pass(ctx context.Context) (next time.Time, err error) {
	name := client.ObjectKey{Namespace: g.options.Namespace, Name: g.options.Service}
	published := &corev1.ConfigMap{}
	if err := g.client.Get(ctx, name, published); client.IgnoreNotFound(err) != nil {
		return time.Time{}, fmt.Errorf("read the ConfigMap %s: %w", name, err)
	}
	// Without signing keys, the published keys stay, and certificates are still renewed.
	keys := published.Data[trustedKeysEntry]
	ring, keysErr := g.options.Keys.Ring(ctx)
	if keysErr == nil {
		keys = format(ring)
	}
	next, err = g.issuer.Renew(ctx, []byte(published.Data[authoritiesEntry]), func(ctx context.Context, bundle []byte) error {
		if err := g.publish(ctx, published, map[string]string{trustedKeysEntry: keys, authoritiesEntry: string(bundle)}); err != nil {
			return err
		}
		g.take(ctx, bundle)
		return nil
	})
	return next, errors.Join(err, keysErr)
}

func format(ring signing.Ring) string {
	var lines strings.Builder
	for _, key := range ring.Known() {
		lines.WriteString(signed.FormatKey(key) + "\n")
	}
	return lines.String()
}

// publish writes the entries into the ConfigMap that was read, and removes other entries.
func (g *Gateway) publish(ctx context.Context, found *corev1.ConfigMap, entries map[string]string) error {
	if maps.Equal(found.Data, entries) && len(found.BinaryData) == 0 {
		return nil
	}
	written := found.DeepCopy()
	written.Data, written.BinaryData = entries, nil
	var err error
	if found.ResourceVersion == "" {
		written.Namespace, written.Name = g.options.Namespace, g.options.Service
		written.Labels = map[string]string{"app.kubernetes.io/part-of": "crypto-broker", "app.kubernetes.io/managed-by": v1alpha1.FieldManager}
		err = g.client.Create(ctx, written, client.FieldOwner(v1alpha1.FieldManager))
	} else {
		err = g.client.Update(ctx, written, client.FieldOwner(v1alpha1.FieldManager))
	}
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s/%s: %w", g.options.Namespace, g.options.Service, err)
	}
	g.log.Info("published signing keys and authorities for key gateways", "configMap", g.options.Service)
	return nil
}

// take sets the authorities for brokers, and calls the functions of OnChange if they have
// changed.
func (g *Gateway) take(ctx context.Context, bundle []byte) {
	before := g.authorities.Swap(&bundle)
	g.looked.Store(true)
	if before != nil && string(*before) == string(bundle) {
		return
	}
	for _, f := range g.onChange {
		f(ctx)
	}
}
