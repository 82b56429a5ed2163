// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/pflag"

// tracesFlag begins the names of the flags about the traces of brokers.
const tracesFlag = "broker-traces-"

func (c *config) traceFlags(f *pflag.FlagSet) {
	f.StringVar(&c.brokerTraces.Endpoint, tracesFlag+"endpoint", "", "`url` of the OpenTelemetry collector for the spans of brokers, which begins with http:// or https://; brokers export no spans if empty")
	f.StringVar(&c.brokerTraces.CABundle, tracesFlag+"ca-bundle", "", "certificate authorities of a --broker-traces-endpoint that begins with https://, as `PEM`, which brokers get with their pods")
	f.StringVar(&c.brokerTraces.Protocol, tracesFlag+"protocol", "grpc", "`protocol` of --broker-traces-endpoint: grpc, http/protobuf or http/json")
	f.StringVar(&c.brokerTraces.Sampler, tracesFlag+"sampler", "parentbased_always_on", "which calls have a span, as a `sampler` of OpenTelemetry: always_on, always_off, traceidratio, or each with parentbased_ before it")
	f.StringVar(&c.brokerTraces.SamplerArgument, tracesFlag+"sampler-argument", "1", "the `part` of the traces that traceidratio samples, from 0 to 1")
}

// tracesFlags are the names of the flags, by the fields of template.Traces.
var tracesFlags = map[string]string{
	"Endpoint": tracesFlag + "endpoint", "CABundle": tracesFlag + "ca-bundle", "Protocol": tracesFlag + "protocol",
	"Sampler": tracesFlag + "sampler", "SamplerArgument": tracesFlag + "sampler-argument",
}

func (c *config) checkTraces(problem func(flag, found, expected string)) {
	c.brokerTraces.Check(func(field, found, expected string) { problem(tracesFlags[field], found, expected) })
}
