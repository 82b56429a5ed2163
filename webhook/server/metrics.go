// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values of the label "reason".
const (
	reasonShare     = "share"
	reasonHandshake = "handshake"
)

var refusedConnections = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "crypto_broker_operator_webhook_refused_connections_total",
	Help: "Connections to the webhooks' port that were closed: share, because their address had its maximum number; handshake, because TLS did not begin in time or failed.",
}, []string{"reason"})

func init() {
	metrics.Registry.MustRegister(refusedConnections)
	for _, reason := range []string{reasonShare, reasonHandshake} {
		refusedConnections.WithLabelValues(reason)
	}
}
