// SPDX-License-Identifier: Apache-2.0

package template

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Audit has the settings of injected brokers for audit records.
type Audit struct {
	// Endpoint is the URL of an OpenTelemetry collector for OTLP over gRPC, which begins with
	// http:// or, with CABundle, with https://. Records are lines of standard error if it is
	// empty.
	Endpoint string

	// CABundle has the certificate authorities of the collector in PEM, as [Traces.CABundle].
	CABundle string
}

// Check calls report for each field with which a broker would not start, with the name, the found
// value and the expected values.
func (a Audit) Check(report func(field, found, expected string)) {
	switch {
	case a.Endpoint != "":
		checkCollector(a.Endpoint, a.CABundle, true, report)
	case a.CABundle != "":
		report("CABundle", "set", "nothing, because there is no endpoint")
	}
}

// Environment returns the variables with which a broker sends its audit records.
func (a Audit) Environment() []corev1.EnvVar {
	if a.Endpoint == "" {
		return nil
	}
	variables := []corev1.EnvVar{{Name: contract.AuditEndpointVariable, Value: a.Endpoint}}
	if authorities, _, _ := authoritiesOf(a.Endpoint, a.CABundle); authorities != "" {
		variables = append(variables, corev1.EnvVar{Name: contract.AuditAuthoritiesVariable, Value: authorities})
	}
	return variables
}
