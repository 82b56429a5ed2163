// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestABrokerSendsItsAuditRecordsToTheCollectorOfThePlatform(t *testing.T) {
	certificate := collectorAuthority(t)
	for sentence, test := range map[string]struct {
		audit Audit
		want  []string // names and values
	}{
		"none":        {Audit{}, nil},
		"without TLS": {Audit{Endpoint: "http://collector:4317"}, []string{contract.AuditEndpointVariable, "http://collector:4317"}},
		"with TLS, without comments of the bundle": {
			Audit{Endpoint: "https://collector:4317", CABundle: "# $(HOME)\n" + certificate},
			[]string{contract.AuditEndpointVariable, "https://collector:4317", contract.AuditAuthoritiesVariable, certificate},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(fixture.Env(test.want...), test.audit.Environment()); diff != "" {
				t.Errorf("found other variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACollectorOfAuditRecordsThatNoBrokerCanUseIsRefused(t *testing.T) {
	certificate := collectorAuthority(t)
	for sentence, test := range map[string]struct {
		audit Audit
		want  string
	}{
		"no URL":                  {Audit{Endpoint: "collector:4317"}, `Audit.Endpoint is "collector:4317", expected a URL such as`},
		"a path":                  {Audit{Endpoint: "http://c:4317/v1/logs"}, "expected one without a path"},
		"another variable":        {Audit{Endpoint: "http://$(KUBERNETES_SERVICE_HOST):4317"}, "expected a URL such as"},
		"TLS without authorities": {Audit{Endpoint: "https://c:4317"}, `Audit.CABundle is "", expected PEM`},
		"authorities without TLS": {Audit{Endpoint: "http://c:4317", CABundle: certificate}, `Audit.CABundle is "set", expected nothing`},
		"authorities of nobody":   {Audit{CABundle: certificate}, `Audit.CABundle is "set", expected nothing, because there is no endpoint`},
	} {
		t.Run(sentence, func(t *testing.T) {
			template := testTemplate()
			template.Audit = test.audit
			if err := template.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected %s", err, test.want)
			}
		})
	}
}
