// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
)

// Traces has the settings of injected brokers for spans.
type Traces struct {
	// Endpoint is the URL of an OpenTelemetry collector, which begins with http:// or,
	// with CABundle, with https://. Brokers export nothing if it is empty.
	Endpoint string

	// CABundle has the certificate authorities of the collector in PEM, at most 16 KiB of
	// certificates. The image of a broker has no authorities, so an endpoint with https:// needs
	// it. It is empty for http://.
	CABundle string

	// Protocol is the protocol of OTLP: grpc, http/protobuf or http/json. If it is empty, the
	// broker's default is used.
	Protocol string

	// Sampler is the name of an OpenTelemetry sampler, which decides which calls have a span. If
	// it is empty, the broker's default is used.
	Sampler string

	// SamplerArgument is the ratio of traces of a sampler by ratio, from 0 to 1. If it is empty,
	// all traces are sampled.
	SamplerArgument string
}

// The lists of protocols and samplers repeat the broker's, so that this package does not import the
// broker's exporters.
var (
	protocols = []string{"grpc", "http/protobuf", "http/json"}
	// Samplers are the samplers of a broker, and SamplersByRatio are the samplers with an
	// argument.
	Samplers = []string{
		"always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
	SamplersByRatio = []string{"traceidratio", "parentbased_traceidratio"}
)

// Check calls report for each field with which a broker would not start, with the name, the found
// value and the expected values.
func (t Traces) Check(report func(field, found, expected string)) {
	if t.Endpoint == "" {
		return
	}
	checkCollector(t.Endpoint, t.CABundle, t.Protocol == "grpc", report)
	for _, choice := range []struct {
		field, found string
		allowed      []string
	}{{"Protocol", t.Protocol, protocols}, {"Sampler", t.Sampler, Samplers}} {
		if known := annotation.OneOf(choice.allowed...); choice.found != "" && !known.Fits(choice.found) {
			report(choice.field, choice.found, known.Expected)
		}
	}
	if t.SamplerArgument != "" {
		// The condition has to refuse NaN, for which every comparison is false.
		if part, err := strconv.ParseFloat(t.SamplerArgument, 64); err != nil || !(part >= 0 && part <= 1) {
			report("SamplerArgument", t.SamplerArgument, "a number from 0 to 1")
		}
	}
}

// podFields are the fields of a pod that a broker's spans have as attributes, each with
// its environment variable and with the attribute's name in OpenTelemetry.
var podFields = []struct{ variable, path, attribute string }{
	{"K8S_NAMESPACE_NAME", "metadata.namespace", "k8s.namespace.name"},
	{"K8S_POD_NAME", "metadata.name", "k8s.pod.name"},
	{"K8S_POD_UID", "metadata.uid", "k8s.pod.uid"},
	{"K8S_NODE_NAME", "spec.nodeName", "k8s.node.name"},
}

// Environment returns the variables with which a broker exports its spans, with
// attributes about the pod. No value of podFields needs to be encoded.
func (t Traces) Environment() []corev1.EnvVar {
	if t.Endpoint == "" {
		return nil
	}
	var variables []corev1.EnvVar
	attributes := make([]string, 0, len(podFields)+1)
	for _, field := range podFields {
		variables = append(variables, corev1.EnvVar{Name: field.variable, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: field.path},
		}})
		attributes = append(attributes, field.attribute+"=$("+field.variable+")")
	}
	attributes = append(attributes, "k8s.container.name="+contract.BrokerContainer)
	authorities, _, _ := authoritiesOf(t.Endpoint, t.CABundle)
	for _, variable := range []corev1.EnvVar{
		{Name: "OTEL_RESOURCE_ATTRIBUTES", Value: strings.Join(attributes, ",")},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: t.Endpoint},
		{Name: contract.TracesAuthoritiesVariable, Value: authorities},
		{Name: "OTEL_EXPORTER_OTLP_PROTOCOL", Value: t.Protocol},
		{Name: "OTEL_TRACES_SAMPLER", Value: t.Sampler},
		{Name: "OTEL_TRACES_SAMPLER_ARG", Value: t.SamplerArgument},
	} {
		if variable.Value != "" {
			variables = append(variables, variable)
		}
	}
	return variables
}
