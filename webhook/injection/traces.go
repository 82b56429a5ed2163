// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
)

// Traces say where injected brokers export the spans of their calls.
type Traces struct {
	// Endpoint is the URL of an OpenTelemetry collector, which begins with http:// or,
	// with CABundle, with https://. Brokers export nothing if it is empty.
	Endpoint string

	// CABundle has the certificate authorities of the collector in PEM, at most 16 KiB
	// of certificates. The image of a broker has no authorities, so an endpoint with
	// https:// needs it. Empty for http://.
	CABundle string

	// Protocol of OTLP: grpc, http/protobuf or http/json; the broker's default if
	// empty.
	Protocol string

	// Sampler decides which calls have a span, by a name that OpenTelemetry
	// defines; the broker's default if empty.
	Sampler string

	// SamplerArgument is the part of the traces that a sampler by ratio takes, from
	// 0 to 1; all if empty.
	SamplerArgument string
}

// Protocols and samplers of a broker. The lists are repeated here, so that the operator
// does not contain the broker's exporters.
var (
	traceProtocols = []string{"grpc", "http/protobuf", "http/json"}
	traceSamplers  = []string{
		"always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
	samplersByRatio = []string{"traceidratio", "parentbased_traceidratio"}
)

// Check calls report for each field with which a broker would not start: its name, what
// was found and what was expected.
func (t Traces) Check(report func(field, found, expected string)) {
	if t.Endpoint == "" {
		return
	}
	if expected := t.expectedEndpoint(); expected != "" {
		report("Endpoint", t.Endpoint, expected)
	}
	if _, found, expected := t.authorities(); expected != "" {
		report("CABundle", found, expected)
	}
	for _, choice := range []struct {
		field, found string
		allowed      []string
	}{{"Protocol", t.Protocol, traceProtocols}, {"Sampler", t.Sampler, traceSamplers}} {
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

// expectedEndpoint returns what was expected of the endpoint, empty if it can be used.
func (t Traces) expectedEndpoint() string {
	const example = "a URL such as http://collector.observability:4317, without user, query, fragment and $"
	u, err := url.Parse(t.Endpoint)
	switch {
	// A dollar sign means something in a container's environment.
	case err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(t.Endpoint, "$"):
		return example
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isPortOrNone(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return example
	case t.Protocol == "grpc" && strings.Trim(u.Path, "/") != "":
		return "one without a path, which gRPC does not have"
	}
	return ""
}

// maxAuthorities is the largest size of CABundle in bytes, without its comments. Each injected
// pod has the bundle in its environment.
const maxAuthorities = 16 << 10

// authorities returns the certificates of CABundle in PEM without comments, which a
// container's environment could misread. If CABundle can't be used, it returns what was
// found, without content, and what was expected.
func (t Traces) authorities() (text, found, expected string) {
	secured := strings.HasPrefix(t.Endpoint, "https://")
	switch {
	case secured && t.CABundle == "":
		return "", "", "PEM with the certificate authorities of the collector, because the endpoint begins with https:// and the broker's image has no authorities"
	case t.CABundle == "":
		return "", "", ""
	case !secured:
		return "", "set", "nothing, because the endpoint does not begin with https://"
	}
	var certificates []byte
	for rest := []byte(t.CABundle); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "", "a block " + block.Type, "PEM with certificates alone"
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "", "a block CERTIFICATE that is no certificate", "PEM with certificates"
		}
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	switch begun := strings.Count(t.CABundle, "-----BEGIN "); {
	case len(certificates) == 0:
		return "", "no certificate", "PEM with the certificate authorities of the collector"
	case begun != strings.Count(string(certificates), "-----BEGIN "):
		return "", "a block that cannot be read", "PEM with certificates alone"
	case len(certificates) > maxAuthorities:
		return "", strconv.Itoa(len(certificates)) + " bytes of certificates", "at most " + strconv.Itoa(maxAuthorities)
	}
	return string(certificates), "", ""
}

func isPortOrNone(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}

// podFields are the fields of a pod that a broker's spans have as attributes, each with
// its environment variable and with the attribute's name in OpenTelemetry.
var podFields = []struct{ variable, path, attribute string }{
	{"K8S_NAMESPACE_NAME", "metadata.namespace", "k8s.namespace.name"},
	{"K8S_POD_NAME", "metadata.name", "k8s.pod.name"},
	{"K8S_POD_UID", "metadata.uid", "k8s.pod.uid"},
	{"K8S_NODE_NAME", "spec.nodeName", "k8s.node.name"},
}

// environment returns the variables with which a broker exports its spans, with
// attributes about the pod. No value of podFields needs to be encoded.
func (t Traces) environment() []corev1.EnvVar {
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
	authorities, _, _ := t.authorities()
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
