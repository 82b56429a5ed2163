// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	rotations = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "crypto_broker_operator_signing_key_rotations_total",
		Help: "Signing keys that this replica made in the place of another.",
	})
	keysByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crypto_broker_operator_signing_keys",
		Help: "Keys that sets of profiles are signed with: the current one, which new pods trust, and retired ones, which running pods may depend on.",
	}, []string{"state"})
	currentSince = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "crypto_broker_operator_signing_key_current_since_timestamp_seconds",
		Help: "Unix time at which the current signing key became current.",
	})
)

func init() {
	metrics.Registry.MustRegister(rotations, keysByState, currentSince)
}

func registerRing(r Ring) {
	keysByState.WithLabelValues("current").Set(1)
	keysByState.WithLabelValues("retired").Set(float64(len(r.retired)))
	currentSince.Set(float64(r.current.since.Unix()))
}
