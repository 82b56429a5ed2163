// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/podauth"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/providersource"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
)

// shutdownTimeout is how long calls that have begun may take to end. It is longer than brokers
// wait for a reply.
const shutdownTimeout = 15 * time.Second

// process has the parts of a gateway that is about to run.
type process struct {
	config       *config
	logger       *slog.Logger
	objects      cache.Cache
	source       *providersource.Source
	certificates *certificates.Mounted
	server       *service.Server
	status       *statusServer
	stopping     atomic.Bool

	listener net.Listener // for brokers
}

// prepare connects the parts of a gateway, and opens its ports.
func prepare(ctx context.Context, access *rest.Config, c *config, types providers.Types, logger *slog.Logger) (*process, error) {
	access = rest.CopyConfig(access)
	// The API server's priority and fairness limits requests.
	access.QPS = -1
	access.UserAgent = "crypto-broker-gateway/" + program.Version(version)
	clients, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("prepare to reach the cluster at %s: %w", access.Host, err)
	}
	g := &process{config: c, logger: logger}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	if g.objects, err = cache.New(access, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()}); err != nil {
		return nil, fmt.Errorf("prepare to reach the cluster at %s: %w", access.Host, err)
	}
	g.source = providersource.New(providersource.Options{Types: types, Objects: g.objects, Secrets: clients.CoreV1(), OperatorNamespace: c.operatorNamespace, Logger: logger})
	if g.certificates, err = certificates.NewMounted(c.certificates); err != nil {
		return nil, err
	}
	permitted, err := podauth.New(ctx, clients, podauth.Options{
		Audience: c.audience, AnyAddress: !c.checkPodAddress, HostNetworkPods: c.hostNetworkPods,
		Keys: func(context.Context) ([]ed25519.PublicKey, error) { return readTrustedKeys(c.trustedKeys) },
	})
	if err != nil {
		return nil, err
	}
	metrics := newMetrics(g)
	var serving tls.Config
	g.certificates.TLSOption(&serving)
	options := service.Options{
		KeysOf: g.source.For, Access: permitted, Certificate: serving.GetCertificate, Logger: logger, Observe: metrics.observe,
	}
	if c.brokerAuthorities != "" {
		options.BrokerAuthorities = func() (*x509.CertPool, error) { return readAuthorities(c.brokerAuthorities) }
	}
	g.server = service.New(options)
	var network net.ListenConfig
	if g.listener, err = network.Listen(ctx, "tcp", c.address); err != nil {
		return nil, fmt.Errorf("open the port for brokers %s: %w", c.address, err)
	}
	paths := http.NewServeMux()
	paths.Handle("GET "+contract.KeyProvidersPath, &reports{ready: g.ready, report: g.source.Report})
	g.status = newStatus(paths, g.ready, metrics.registry, logger)
	if err := g.status.listen(ctx, c.statusAddress); err != nil {
		return nil, errors.Join(err, g.listener.Close())
	}
	return g, nil
}

// run serves until ctx ends, which is no error. Calls that have begun may then end.
func (g *process) run(ctx context.Context) error {
	// The parts end after ctx, because calls need them until the server has ended.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(lasting) // the failure of one part ends the others
	group.Go(func() error { return g.objects.Start(running) })
	group.Go(func() error { return g.source.Run(running) })
	group.Go(func() error { return g.certificates.Start(running) })
	group.Go(func() error { return g.server.Serve(g.listener) })
	group.Go(g.status.serve)
	group.Go(func() error {
		select {
		case <-ctx.Done():
			g.stopping.Store(true)
			g.logger.Info("shutting down", "servesFor", g.config.shutdownDelay.String(), "timeout", shutdownTimeout.String())
			select {
			case <-time.After(g.config.shutdownDelay):
			case <-running.Done():
			}
		case <-running.Done():
			g.stopping.Store(true)
		}
		deadline, cancel := context.WithTimeout(lasting, shutdownTimeout)
		defer cancel()
		g.server.Shutdown(deadline)
		stop()
		return g.status.Close()
	})
	g.logger.Info("listening", "address", g.listener.Addr().String(), "status", g.config.statusAddress,
		"operatorNamespace", g.config.operatorNamespace, "audience", g.config.audience)
	return group.Wait()
}

// ready returns the empty string if the gateway serves, or else what is missing.
func (g *process) ready() string {
	switch {
	case g.stopping.Load():
		return "shutting down"
	case !g.source.Ready():
		return "the key providers are not read yet"
	}
	if err := g.certificates.Ready(nil); err != nil {
		return err.Error()
	}
	return ""
}
