// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs/libraries"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/brokercertificates"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regocheck"
	"github.com/crypto-broker/crypto-broker-operator/webhook"
	"github.com/crypto-broker/crypto-broker-operator/webhook/server"
	"github.com/crypto-broker/crypto-broker-operator/webhook/validation"
)

// shutdownTimeout is how long reconcilers and webhooks may take to end.
const shutdownTimeout = 20 * time.Second

// leaveTime is how long the webhooks serve after the process got its signal to end. Nodes and API
// servers need this time to learn that the replica is no longer an endpoint of the Service.
const leaveTime = 5 * time.Second

// operate runs the operator until the context ends, and its webhooks for
// leaveTime after that.
func operate(ctx context.Context, c *config, logTo io.Writer) (err error) {
	defer setLogger(c, logTo)()
	records, endAudit, err := c.useAudit(logTo, metrics.Registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endAudit()) }()
	traces, endTraces, err := c.traces.use(ctx, metrics.Registry)
	if err != nil {
		return err
	}
	defer endTraces()
	kubernetes, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no access to a cluster: %w", err)
	}
	prepare(kubernetes)
	if err := awaitDefinitions(ctx, kubernetes, c.healthAddress); err != nil || ctx.Err() != nil {
		return err
	}

	certs, err := newCertificates(kubernetes, c)
	if err != nil {
		return err
	}
	mgr, err := newManager(kubernetes, c, certs)
	if err != nil {
		return err
	}
	client := confirm.NewClient()
	defer client.Close()
	keys, err := addKeys(mgr, c, records)
	if err != nil {
		return err
	}
	gateway, err := addKeyGateway(mgr, c, keys, records)
	if err != nil {
		return err
	}
	if err := addReconcilers(mgr, c, certs, keys, gateway, client, records, traces); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := addWebhooks(mgr, c, certs, keys, records, traces, ctx.Done()); err != nil {
		return err
	}
	if c.enableWebhooks {
		if err := addTemplate(mgr, c, keys); err != nil {
			return err
		}
	}
	log.Log.Info("starting", "namespace", c.namespace)
	if certs == nil {
		return mgr.Start(ctx)
	}
	serving, end := outlasting(ctx, leaveTime)
	defer end()
	return mgr.Start(serving)
}

// outlasting returns a context that ends when extra has passed after the end of ctx.
func outlasting(ctx context.Context, extra time.Duration) (context.Context, context.CancelFunc) {
	outlasting, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		log.Log.Info("leaving", "endsIn", extra.String())
		time.AfterFunc(extra, end)
	})
	return outlasting, func() {
		stop()
		end()
	}
}

// prepare turns off client-go's own rate limit, because the operator has to act within a second.
// The API server's priority and fairness limits the operator's requests, and the reconcilers
// limit how much they do at a time. Responses are not compressed, as for the controllers of
// Kubernetes: to compress an event of a watch costs the API server as much as to encode it.
func prepare(kubernetes *rest.Config) {
	kubernetes.QPS = -1
	kubernetes.DisableCompression = true
	kubernetes.UserAgent = "crypto-broker-operator/" + program.Version(version)
}

func newManager(kubernetes *rest.Config, c *config, certs certificateSource) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certificatesv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	timeout := shutdownTimeout
	options := ctrl.Options{
		Scheme:                     scheme,
		Cache:                      controllers.CacheOptions(c.namespace),
		Metrics:                    c.metricsOptions(certs),
		HealthProbeBindAddress:     c.healthAddress,
		LeaderElection:             c.leaderElect,
		LeaderElectionID:           v1alpha1.LeaderElectionLease,
		LeaderElectionNamespace:    c.namespace,
		LeaderElectionResourceLock: "leases",
		// The process ends right after its manager, so the next leader need not wait for the
		// lease to expire.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &timeout,
	}
	if c.brokerCertificates { // other API servers may not have the resource
		options.Cache.ByObject[&certificatesv1.PodCertificateRequest{}] = brokercertificates.CacheOptions()
	}
	if certs != nil {
		options.WebhookServer = server.New(server.Options{Port: c.webhookPort, TLS: certs.TLSOption})
	}
	mgr, err := ctrl.NewManager(kubernetes, options)
	if err != nil {
		return nil, fmt.Errorf("prepare to reach the cluster at %s: %w", kubernetes.Host, err)
	}
	return mgr, nil
}

// addWebhooks adds the webhooks, which every replica serves. A replica becomes ready when the API
// server would accept its certificate, so nobody calls it earlier.
func addWebhooks(mgr manager.Manager, c *config, certs certificateSource, keys webhook.Keys, records *audit.Log, traces *changetrace.Tracer, leaving <-chan struct{}) error {
	if certs == nil {
		return mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	var modules validation.CheckModule
	if c.keyAccessRegoDir != "" {
		modules = regocheck.NewClient(c.keyAccessRegoDir).Check
	}
	err := webhook.Register(mgr, webhook.Options{
		OperatorNamespace: c.namespace,
		KeyAccessModules:  modules,
		MinimumStrength:   c.minimumStrength,
		Template:          c.template(),
		Keys:              keys,
		Audit:             records,
		Traces:            traces,
		Leaving:           leaving,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(certs); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("certificates", certs.Ready); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}

// setLogger makes the operator and its libraries write one structured log. end writes what the
// limit on repeats has left out.
func setLogger(c *config, to io.Writer) (end func()) {
	handler, end := logs.New(logs.Options{To: to, Format: c.logFormat, Level: c.level, Component: "operator", Version: program.Version(version)})
	libraries.Use(handler)
	return end
}
