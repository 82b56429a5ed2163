// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// expiry is when certificates expire. Only the leader has the certificates of key gateways.
var expiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "crypto_broker_operator_certificate_expiry_timestamp_seconds",
	Help: "Unix time at which the certificate expires: of the webhook's certificate authority (ca), of this replica's serving certificate (leaf), and, of the leader, the same of key gateways (key-gateway-ca and key-gateway).",
}, []string{"certificate"})

// configurationMissing reports which of the two webhook configurations does not exist.
var configurationMissing = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "crypto_broker_operator_webhook_configuration_missing",
	Help: "1 while this webhook configuration of the operator does not exist and the other one does, else 0.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(expiry, configurationMissing)
}

func registerExpiry(name string, certificate *x509.Certificate) {
	expiry.WithLabelValues(name).Set(float64(certificate.NotAfter.Unix()))
}
