// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keygateway"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/presence"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// addReconcilers adds the reconcilers, which only the leader runs. certs is nil without webhooks,
// gateway without a key gateway, records without an audit log, and traces without traces of
// changes. keys sign sets. client asks brokers which set they serve, and key gateways for the
// state of key providers.
func addReconcilers(mgr manager.Manager, c *config, certs certificateSource, keys controllers.Keys, gateway *keygateway.Gateway, client *confirm.Client, records *audit.Log, traces *changetrace.Tracer) error {
	var outdated func(*corev1.Pod) bool
	var ready func() error
	if certs != nil {
		outdated = injection.Outdated(c.template())
		ready = func() error { return certs.Ready(nil) }
	}
	options := controllers.Options{
		OperatorNamespace: c.namespace,
		StatusPort:        c.brokerStatusPort,
		Annotate:          c.propagation == propagationAnnotation,
		Ask:               client.Ask,
		AskGateway:        keyproviders.AskBy(client),
		Outdated:          outdated,
		Keys:              keys,
		MinimumStrength:   c.minimumStrength,
		Metrics:           metrics.Registry,
		Audit:             records,
		Traces:            traces,
	}
	if gateway != nil {
		options.KeyGateway = gateway
	}
	if err := controllers.Setup(mgr, options); err != nil {
		return err
	}
	err := presence.Setup(mgr, presence.Options{
		Excluded: append([]string{c.namespace}, c.excludedNamespaces...),
		Wanted:   wanted,
		Outdated: outdated,
		Metrics:  metrics.Registry,
	})
	if err != nil {
		return err
	}
	return catalogue.Setup(mgr, catalogue.Options{
		Profiles:          c.catalogueProfiles,
		NamespaceSelector: c.catalogueSelector,
		Ready:             ready,
	})
}

// wanted reports whether a pod would get a broker if it were created now, or why it
// would be refused.
func wanted(pod *corev1.Pod, byDefault bool) (bool, error) {
	decision, err := injection.Decide(pod, byDefault)
	return decision.Inject, err
}

// template returns the template of all injected brokers.
func (c *config) template() template.Template {
	return template.Template{
		Image:         c.brokerImage,
		AllowedImages: c.allowedBrokerImages,
		PullPolicy:    corev1.PullPolicy(c.brokerPullPolicy),
		SocketGroup:   c.socketGroup,
		StatusPort:    c.brokerStatusPort,
		Resources:     c.brokerResources,
		LogLevel:      c.brokerLogLevel,
		RequireFIPS:   c.brokerRequireFIPS,
		Traces:        c.brokerTraces,
		Audit:         c.brokerAudit,
		Version:       program.Version(version),
		KeyGateway:    keygateway.Address(c.namespace, c.keyGatewayService),

		BrokerCertificates: c.brokerCertificates,
	}
}
