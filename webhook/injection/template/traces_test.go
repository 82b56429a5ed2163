// SPDX-License-Identifier: Apache-2.0

package template

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// configured returns how a broker reads an environment: the target of its spans, or the error at its start.
func configured(environment []corev1.EnvVar) ([]string, error) {
	c := tracing.NewConfig()
	variables := c.Variables()
	for _, variable := range environment {
		i := slices.IndexFunc(variables, func(known tracing.Variable) bool { return known.Name == variable.Name })
		if i < 0 {
			continue
		}
		if err := variables[i].Set(variable.Value); err != nil {
			return nil, err
		}
	}
	return c.Targets(), c.Check()
}

// testTraces are the values of a chart that has brokers export spans.
func testTraces() Traces {
	return Traces{Endpoint: "http://collector.observability:4317", Protocol: "grpc", Sampler: "parentbased_traceidratio", SamplerArgument: "0.01"}
}

func TestWithoutAnEndpointABrokerHasNoVariables(t *testing.T) {
	without := testTraces()
	without.Endpoint = ""
	for sentence, traces := range map[string]Traces{"nothing": {}, "all but the endpoint": without} {
		if found := traces.Environment(); found != nil {
			t.Errorf("%s is set: found the variables %v, expected none", sentence, found)
		}
	}
}

func TestABrokerStartsWithWhateverTheTemplateAccepts(t *testing.T) {
	for _, endpoint := range []string{"http://collector:4317", "http://collector", "http://[::1]:4317", "http://10.0.0.1:4318/"} {
		for _, protocol := range append(protocols, "") {
			for _, sampler := range append(Samplers, "") {
				for _, part := range []string{"", "0", "1", "0.01", "1e-06"} {
					traces := Traces{Endpoint: endpoint, Protocol: protocol, Sampler: sampler, SamplerArgument: part}
					traces.Check(func(field, found, expected string) {
						t.Errorf("%+v: the field %s is %q, expected %s", traces, field, found, expected)
					})
					if targets, err := configured(traces.Environment()); err != nil || len(targets) != 1 {
						t.Errorf("%+v: the broker exports to %q: %v", traces, targets, err)
					}
				}
			}
		}
	}
}

// collectorAuthority returns a certificate authority in PEM.
func collectorAuthority(t *testing.T) string {
	t.Helper()
	certificate, err := os.ReadFile("testdata/collector-authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	return string(certificate)
}

func TestABrokerGetsTheAuthoritiesOfItsCollectorWithoutComments(t *testing.T) {
	certificate := collectorAuthority(t)
	for sentence, bundle := range map[string]string{
		"comments":          "# $(HOME) of the cluster\n" + certificate + "# next\n" + certificate,
		"a byte order mark": "\ufeff" + certificate + certificate,
	} {
		t.Run(sentence, func(t *testing.T) { getsBoth(t, certificate, bundle) })
	}
}

// getsBoth checks that a broker gets the bundle with a certificate, twice, and nothing else.
func getsBoth(t *testing.T, certificate, bundle string) {
	t.Helper()
	traces := Traces{Endpoint: "https://collector:4317", CABundle: bundle}
	traces.Check(func(field, found, expected string) {
		t.Errorf("the field %s is %q, expected %s", field, found, expected)
	})
	if targets, err := configured(traces.Environment()); err != nil || len(targets) != 1 {
		t.Errorf("the broker exports to %q: %v", targets, err)
	}
	if found := traces.Environment(); !slices.Contains(found, corev1.EnvVar{Name: contract.TracesAuthoritiesVariable, Value: certificate + certificate}) {
		t.Errorf("found the variables %v, expected both certificates and nothing else", found)
	}
}

func TestTracesThatNoBrokerWouldStartWithAreRefused(t *testing.T) {
	certificate := collectorAuthority(t)
	for sentence, test := range map[string]struct {
		change func(*Traces)
		want   string
	}{
		"host and port":           {func(t *Traces) { t.Endpoint = "collector:4317" }, `Endpoint is "collector:4317", expected a URL such as`},
		"no host":                 {func(t *Traces) { t.Endpoint = "http://:4317" }, `Endpoint is "http://:4317", expected a URL such as`},
		"a port that is 0":        {func(t *Traces) { t.Endpoint = "http://c:0" }, `Endpoint is "http://c:0", expected a URL such as`},
		"a port too high":         {func(t *Traces) { t.Endpoint = "http://c:65536" }, `expected a URL such as`},
		"an empty port":           {func(t *Traces) { t.Endpoint = "http://c:" }, `expected a URL such as`},
		"a password":              {func(t *Traces) { t.Endpoint = "http://a:b@c" }, `expected a URL such as`},
		"a query":                 {func(t *Traces) { t.Endpoint = "http://c?a=b" }, `expected a URL such as`},
		"another variable":        {func(t *Traces) { t.Endpoint = "http://$(KUBERNETES_SERVICE_HOST):4317" }, `expected a URL such as`},
		"a socket":                {func(t *Traces) { t.Endpoint = "unix:///run/c.sock" }, `expected a URL such as`},
		"TLS without authorities": {func(t *Traces) { t.Endpoint = "https://c:4317" }, `CABundle is "", expected PEM with the certificate authorities of the collector`},
		"authorities without TLS": {func(t *Traces) { t.CABundle = certificate }, `CABundle is "set", expected nothing, because the endpoint does not begin with https://`},
		"no PEM":                  {func(t *Traces) { t.Endpoint, t.CABundle = "https://c:4317", "secret" }, `CABundle is "no certificate", expected PEM`},
		"a private key": {func(t *Traces) {
			t.Endpoint, t.CABundle = "https://c:4317", certificate+"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
		}, `CABundle is "a block PRIVATE KEY", expected PEM with only certificates`},
		"a certificate that is none": {func(t *Traces) {
			t.Endpoint, t.CABundle = "https://c:4317", "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n"
		}, `CABundle is "a block CERTIFICATE that is not a certificate", expected PEM with certificates`},
		"half a certificate": {func(t *Traces) {
			t.Endpoint, t.CABundle = "https://c:4317", certificate+certificate[:len(certificate)/2]
		}, `CABundle is "a block that cannot be read"`},
		"too many authorities":              {func(t *Traces) { t.Endpoint, t.CABundle = "https://c:4317", strings.Repeat(certificate, 60) }, "bytes of certificates\", expected at most 16384"},
		"a URL with TLS and without a host": {func(t *Traces) { t.Endpoint, t.CABundle = "https://:4317", certificate }, `Endpoint is "https://:4317", expected a URL such as`},
		"a path for gRPC":                   {func(t *Traces) { t.Endpoint = "http://c:4317/v1/traces" }, "expected one without a path"},
		"another protocol":                  {func(t *Traces) { t.Protocol = "thrift" }, `Protocol is "thrift", expected grpc, http/protobuf or http/json`},
		"another sampler":                   {func(t *Traces) { t.Sampler = "ratio" }, `Sampler is "ratio", expected always_on, `},
		"more than all":                     {func(t *Traces) { t.SamplerArgument = "2" }, `SamplerArgument is "2", expected a number from 0 to 1`},
		"a part that is NaN":                {func(t *Traces) { t.SamplerArgument = "NaN" }, `SamplerArgument is "NaN", expected a number from 0 to 1`},
	} {
		t.Run(sentence, func(t *testing.T) {
			template := testTemplate()
			template.Traces = testTraces()
			test.change(&template.Traces)
			if err := template.Validate(); err == nil || !strings.Contains(err.Error(), "the field Traces.") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected %s", err, test.want)
			}
		})
	}
}

// The names are in the chart's schema, too, which names the value that is wrong.
func TestTheChartHasTheProtocolsAndSamplersOfBrokers(t *testing.T) {
	content, err := os.ReadFile("../../../charts/crypto-broker-operator/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type property struct {
		Enum       []string
		Properties map[string]json.RawMessage
	}
	at := func(raw []byte) (p property) {
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	schema := at(content)
	for _, name := range []string{"broker", "traces"} {
		schema = at(schema.Properties[name])
	}
	if diff := cmp.Diff(protocols, at(schema.Properties["protocol"]).Enum); diff != "" {
		t.Errorf("the chart has other protocols (-code +chart):\n%s", diff)
	}
	if diff := cmp.Diff(Samplers, at(schema.Properties["sampler"]).Enum); diff != "" {
		t.Errorf("the chart has other samplers (-code +chart):\n%s", diff)
	}
}
