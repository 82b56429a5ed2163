// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var refused = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "crypto_broker_operator_catalogue_refused",
	Help: "1 for each profile of the catalogue that the API server refuses; other profiles are not listed.",
}, []string{"profile"})

func init() {
	metrics.Registry.MustRegister(refused)
}
