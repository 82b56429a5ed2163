// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// Values of the label "result". The label sets are closed.
const (
	resultInjected = "injected"
	resultSkipped  = "skipped"
	resultRefused  = "refused"
	resultError    = "error"
)

var (
	injections = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_operator_injections_total",
		Help: "Pods that the API server asked about, by result: injected, skipped, refused or error.",
	}, []string{"result"})

	injectionRefusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_operator_injection_refusals_total",
		Help: "Pods that were refused, by the reason of the first problem: annotation, if an annotation of the broker is unknown or has a wrong value; reserved, if the pod uses a name that is reserved for the broker; pod, if another part of the pod prevents the injection.",
	}, []string{"reason"})

	injectionDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "crypto_broker_operator_injection_duration_seconds",
		Help:    "Time to answer the API server about a pod, reads included.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	})

	refusedRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_operator_webhook_refused_requests_total",
		Help: "Requests to the webhooks that were refused before their object was checked: size, because they are too large or of no known length; room, because too many of the same address or namespace were in flight; other, because they did not arrive in time or are not JSON.",
	}, []string{"reason"})

	// reasons are the values of its label, by the status of the answer.
	reasons = map[int]string{
		http.StatusLengthRequired:        "size",
		http.StatusRequestEntityTooLarge: "size",
		http.StatusTooManyRequests:       "room",
		http.StatusBadRequest:            "other",
		http.StatusInternalServerError:   "other",
	}
)

func init() {
	metrics.Registry.MustRegister(injections, injectionRefusals, injectionDuration, refusedRequests)
	for _, reason := range injection.Reasons {
		injectionRefusals.WithLabelValues(string(reason))
	}
	for _, reason := range reasons {
		refusedRequests.WithLabelValues(reason)
	}
	// A series that is absent until the first event hides that event from a
	// rate.
	for _, result := range []string{resultInjected, resultSkipped, resultRefused, resultError} {
		injections.WithLabelValues(result)
	}
}
