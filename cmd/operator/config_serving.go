// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
)

// servingConfig has the settings of the ports for webhooks and metrics.
type servingConfig struct {
	metricsSecure        bool
	certificateDirectory string
}

func (c *servingConfig) flags(f *pflag.FlagSet) {
	f.BoolVar(&c.metricsSecure, "metrics-secure", false, "serve metrics by HTTPS, with the certificate of the webhooks, and only to accounts that the API server lets get /metrics")
	f.StringVar(&c.certificateDirectory, "webhook-certificate-dir", "", "`directory` with tls.crt and tls.key of the webhooks, which another program renews, such as cert-manager; if empty, the operator makes the certificates and writes the caBundles")
}

func (c *servingConfig) check(enableWebhooks bool, problem func(flag, found, expected string)) {
	if c.metricsSecure && !enableWebhooks {
		problem("metrics-secure", "true", "false without --enable-webhooks, whose certificate serves the metrics")
	}
}

// certificateSource has the serving certificate of the webhooks, and keeps it current.
type certificateSource interface {
	manager.Runnable
	// TLSOption makes a server use the certificate.
	TLSOption(*tls.Config)
	// Ready returns why there is no certificate to serve, or nil if there is one.
	Ready(*http.Request) error
}

// newCertificates returns the source of the webhooks' certificate, or nil without webhooks.
func newCertificates(kubernetes *rest.Config, c *config) (certificateSource, error) {
	switch {
	case !c.enableWebhooks:
		return nil, nil
	case c.serving.certificateDirectory != "":
		return certificates.NewMounted(c.serving.certificateDirectory)
	default:
		return certificates.New(kubernetes, certificates.Options{
			Namespace:               c.namespace,
			SecretName:              c.caSecret,
			ServiceName:             c.webhookService,
			MutatingConfiguration:   c.mutatingConfiguration,
			ValidatingConfiguration: c.validatingConfiguration,
		})
	}
}

// metricsOptions returns the options of the metrics server: HTTP for everybody, or HTTPS for
// accounts that may read metrics. certs is nil without webhooks.
func (c *config) metricsOptions(certs certificateSource) metricsserver.Options {
	options := metricsserver.Options{BindAddress: c.metricsAddress}
	if c.serving.metricsSecure {
		options.SecureServing = true
		options.FilterProvider = onlyToReaders
		options.TLSOpts = []func(*tls.Config){certs.TLSOption, withoutHTTP2}
	}
	return options
}

// withoutHTTP2 turns HTTP/2 off, because one connection of HTTP/2 can open many streams before
// its token is checked.
func withoutHTTP2(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }
