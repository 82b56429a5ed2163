// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"net/http"
	"time"

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

// Values of the label "reason". The label set is closed.
const (
	reasonInvalid = "invalid"
	reasonWeaker  = "weaker"
	reasonOther   = "other"
)

var (
	profileValidations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_operator_profile_validations_total",
		Help: "CryptoProfiles and ClusterCryptoProfiles that were checked at admission: accepted, refused or error.",
	}, []string{"result"})

	profileRefusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_operator_profile_refusals_total",
		Help: "CryptoProfiles and ClusterCryptoProfiles that were refused at admission, by reason: invalid, if they do not compile; weaker, by the guard against weaker profiles; other, such as a strength below the minimum.",
	}, []string{"reason"})

	profileValidationDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "crypto_broker_operator_profile_validation_duration_seconds",
		Help:    "Time to answer the API server about a CryptoProfile or a ClusterCryptoProfile, reads included.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	})
)

func init() {
	metrics.Registry.MustRegister(profileValidations, profileRefusals, profileValidationDuration)
	for _, reason := range []string{reasonInvalid, reasonWeaker, reasonOther} {
		profileRefusals.WithLabelValues(reason)
	}
	// A series that is absent until the first event hides that event from a
	// rate.
	for _, result := range []string{resultAccepted, resultRefused, resultError} {
		profileValidations.WithLabelValues(result)
	}
}

// counted counts the answers of a validator.
func counted(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		begin := time.Now()
		response := next.Handle(ctx, request)
		profileValidationDuration.Observe(time.Since(begin).Seconds())
		result := resultOf(response)
		profileValidations.WithLabelValues(result).Inc()
		if result == resultRefused {
			profileRefusals.WithLabelValues(refusalOf(response)).Inc()
		}
		return response
	})
}

// refusalOf returns why a profile was refused.
func refusalOf(response admission.Response) string {
	switch {
	case response.AuditAnnotations[auditWeaker] == weakerRefused:
		return reasonWeaker
	case response.Result.Code == http.StatusUnprocessableEntity:
		return reasonInvalid
	}
	return reasonOther
}
