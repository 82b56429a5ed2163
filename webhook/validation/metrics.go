// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Values of the label "result". The label set is closed.
const (
	resultAccepted = "accepted"
	resultRefused  = "refused"
	resultError    = "error"
)

var profileValidations = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "crypto_broker_operator_profile_validations_total",
	Help: "CryptoProfiles and ClusterCryptoProfiles that were checked at admission: accepted, refused or error.",
}, []string{"result"})

func init() {
	metrics.Registry.MustRegister(profileValidations)
	// A series that is absent until the first event hides that event from a
	// rate.
	for _, result := range []string{resultAccepted, resultRefused, resultError} {
		profileValidations.WithLabelValues(result)
	}
}

// counted counts the answers of a validator.
func counted(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		profileValidations.WithLabelValues(resultOf(response)).Inc()
		return response
	})
}
