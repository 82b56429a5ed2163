// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func lookupNothing(string) (string, bool) { return "", false }

func TestHelpNamesEveryFlag(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, lookupNothing, &stdout, &stderr); code != program.ExitOK || stderr.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, stderr.String())
	}
	for _, flag := range []string{
		"--namespace", "--leader-elect", "--propagation", "--metrics-bind-address", "--health-probe-bind-address",
		"--enable-webhooks", "--webhook-port", "--webhook-service-name", "--ca-secret-name",
		"--mutating-webhook-configuration", "--validating-webhook-configuration", "--broker-image", "--allowed-broker-images", "--broker-image-pull-policy",
		"--broker-status-port", "--broker-cpu-request", "--broker-memory-request", "--broker-memory-limit",
		"--broker-log-level", "--socket-group", "--minimum-strength", "--signing-secret-name", "--signing-key-lifetime", "--log-level", "--log-format",
		"--broker-traces-endpoint", "--broker-traces-ca-bundle", "--broker-traces-protocol", "--broker-traces-sampler", "--broker-traces-sampler-argument",
		"--key-gateway-service", "--broker-certificates", "--key-access-rego-dir", "--catalogue", "--catalogue-namespaces", "--excluded-namespaces", "--metrics-secure", "--webhook-certificate-dir",
	} {
		if !strings.Contains(stdout.String(), flag+" ") {
			t.Errorf("%s is not in the help:\n%s", flag, stdout.String())
		}
	}
}

func TestAWrongValueIsOneClearSentence(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"a flag that does not exist":              {[]string{"--profiles"}, "unknown flag: --profiles"},
		"an argument":                             {[]string{"start"}, `unexpected argument "start"`},
		"a namespace that can't be one":           {[]string{"--namespace=A_b"}, `--namespace is "A_b", expected the name of the operator's namespace`},
		"another way of propagation":              {[]string{"--propagation=fast"}, `--propagation is "fast", expected annotation or kubelet`},
		"an address without a port":               {[]string{"--metrics-bind-address=8080"}, `--metrics-bind-address is "8080", expected an address with a port`},
		"no image to inject":                      {nil, `--broker-image is "", expected the image of the brokers to inject`},
		"another pull policy":                     {[]string{"--broker-image-pull-policy=Sometimes"}, `expected Always, IfNotPresent or Never`},
		"an image without a tag":                  {[]string{"--allowed-broker-images=registry.example/broker"}, `--allowed-broker-images has "registry.example/broker", expected an image with a tag or a digest`},
		"a privileged status port":                {[]string{"--broker-status-port=80"}, `--broker-status-port is "80", expected a port from 1024 to 65535`},
		"a group beyond a user namespace":         {[]string{"--socket-group=65536"}, `--socket-group is "65536", expected a group id from 1 to 65535`},
		"no quantity":                             {[]string{"--broker-memory-limit=much"}, `--broker-memory-limit is "much", expected a quantity`},
		"a limit that no broker can live with":    {[]string{"--broker-memory-limit=16Mi"}, `--broker-memory-limit is "16Mi", expected at least 32Mi, or 0 for none`},
		"a request above the limit":               {[]string{"--broker-memory-request=1Gi"}, `expected at most --broker-memory-limit, which is "128Mi"`},
		"a collector without its authorities":     {[]string{"--broker-traces-endpoint=https://c:4317"}, `--broker-traces-ca-bundle is "", expected PEM with the certificate authorities of the collector`},
		"a protocol that there is not":            {[]string{"--broker-traces-endpoint=http://c", "--broker-traces-protocol=thrift"}, `--broker-traces-protocol is "thrift", expected grpc, http/protobuf or http/json`},
		"a sampler that there is not":             {[]string{"--broker-traces-endpoint=http://c", "--broker-traces-sampler=jaeger_remote"}, `--broker-traces-sampler is "jaeger_remote", expected always_on`},
		"more than all":                           {[]string{"--broker-traces-endpoint=http://c", "--broker-traces-sampler-argument=1.5"}, `--broker-traces-sampler-argument is "1.5", expected a number from 0 to 1`},
		"a strength that no table has":            {[]string{"--minimum-strength=100"}, `--minimum-strength is "100", expected 112, 128, 192 or 256 bits, or 0 for any`},
		"a key of a log that is off":              {[]string{"--audit-key=/k"}, `--audit-key is "/k", expected nothing without --audit`},
		"an audit file of one record":             {[]string{"--audit", "--audit-file-size=1Ki"}, `--audit-file-size is "1Ki", expected a quantity such as "64Mi", at least 64Ki`},
		"no full audit files":                     {[]string{"--audit", "--audit-files=0"}, `--audit-files is "0", expected at least 1`},
		"audit records on the disk at any time":   {[]string{"--audit", "--audit-sync=never"}, `--audit-sync is "never", expected each or second`},
		"a collector of a log that is off":        {[]string{"--audit-otlp-endpoint=http://c"}, `--audit-otlp-endpoint is "http://c", expected nothing without --audit`},
		"a collector beside a file":               {[]string{"--audit", "--audit-file=/f", "--audit-otlp-endpoint=http://c"}, `--audit-otlp-endpoint is "http://c", expected nothing beside --audit-file`},
		"a collector with a path":                 {[]string{"--audit", "--audit-otlp-endpoint=http://c/v1/logs"}, `--audit-otlp-endpoint is "http://c/v1/logs", expected a URL of OTLP over gRPC`},
		"authorities without TLS":                 {[]string{"--audit", "--audit-otlp-endpoint=http://c", "--audit-otlp-ca-bundle=x"}, `--audit-otlp-ca-bundle is "set", expected nothing`},
		"a collector of traces with a path":       {[]string{"--traces-endpoint=http://c/v1/traces"}, `--traces-endpoint is "http://c/v1/traces", expected a URL of OTLP over gRPC`},
		"authorities of traces without TLS":       {[]string{"--traces-endpoint=http://c", "--traces-ca-bundle=x"}, `--traces-ca-bundle is "set", expected nothing, because`},
		"authorities of traces of nobody":         {[]string{"--traces-ca-bundle=x"}, `--traces-ca-bundle is "set", expected nothing without --traces-endpoint`},
		"more than all changes":                   {[]string{"--traces-endpoint=http://c", "--traces-ratio=1.5"}, `--traces-ratio is "1.5", expected a number from 0 to 1`},
		"no part of the changes":                  {[]string{"--traces-endpoint=http://c", "--traces-ratio="}, `--traces-ratio is "", expected a number from 0 to 1`},
		"a collector of brokers that is no URL":   {[]string{"--broker-audit-endpoint=c:4317"}, `--broker-audit-endpoint is "c:4317", expected a URL such as`},
		"authorities of no collector":             {[]string{"--broker-audit-ca-bundle=x"}, `--broker-audit-ca-bundle is "set", expected nothing, because there is no endpoint`},
		"another log level":                       {[]string{"--log-level=loud"}, `--log-level is "loud", expected debug, info, warn or error`},
		"a port that is no number":                {[]string{"--webhook-port=https"}, `invalid argument "https" for "--webhook-port" flag`},
		"a profile that is not in the catalogue":  {[]string{"--catalogue=default,fips"}, `--catalogue is "default,fips", expected all, or names of default, fips-140-3-128bit`},
		"a selector that is none":                 {[]string{"--catalogue-namespaces=a=b=c"}, `--catalogue-namespaces is "a=b=c", expected a label selector such as environment=production`},
		"an excluded namespace that can't be one": {[]string{"--excluded-namespaces=a,B"}, `--excluded-namespaces is "B", expected names of namespaces`},
		"a name that no signing Secret can have":  {[]string{"--signing-secret-name=A"}, `--signing-secret-name is "A", expected the name of an object`},
		"a key that would live for a moment":      {[]string{"--signing-key-lifetime=59m"}, `--signing-key-lifetime is "59m0s", expected at least 1h0m0s`},
		"secure metrics without a certificate":    {[]string{"--metrics-secure", "--enable-webhooks=false"}, `--metrics-secure is "true", expected false without --enable-webhooks`},
		"certificates without a key gateway":      {[]string{"--broker-certificates"}, `--broker-certificates is "true", expected false without --key-gateway-service`},
		"a name that no Service can have":         {[]string{"--key-gateway-service=8.a"}, `--key-gateway-service is "8.a", expected the name of a Service`},
		"a name that no Secret can have":          {[]string{"--ca-secret-name=A"}, `--ca-secret-name is "A", expected the name of an object`},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"--namespace=crypto-broker-system"}, test.args...)
			if code := run(t.Context(), args, lookupNothing, &stdout, &stderr); code != program.ExitUsage {
				t.Fatalf("exit code %d, expected %d", code, program.ExitUsage)
			}
			if !strings.Contains(stderr.String(), test.want) {
				t.Errorf("found\n%s\nexpected\n%s", stderr.String(), test.want)
			}
		})
	}
}

func TestDefaultsAndTheEnvironment(t *testing.T) {
	c, err := parse([]string{"--broker-image=broker:1", "--broker-cpu-request=0"}, func(name string) (string, bool) {
		return "from-" + strings.ToLower(strings.ReplaceAll(name, "_", "-")), true
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.namespace != "from-pod-namespace" {
		t.Errorf("namespace is %q", c.namespace)
	}
	if _, has := c.brokerResources.Requests[corev1.ResourceCPU]; has || c.brokerResources.Limits.Memory().String() != "128Mi" || c.brokerResources.Requests.Memory().String() != "32Mi" {
		t.Errorf("resources are %+v", c.brokerResources)
	}
	if !c.leaderElect || !c.enableWebhooks || c.propagation != propagationAnnotation {
		t.Errorf("found %+v", c)
	}
}

func TestWithoutWebhooksNoImageIsNeeded(t *testing.T) {
	if _, err := parse([]string{"--namespace=a", "--enable-webhooks=false"}, lookupNothing); err != nil {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	var stdout bytes.Buffer
	if code := run(t.Context(), []string{"version"}, lookupNothing, &stdout, &stdout); code != program.ExitOK || !strings.HasPrefix(stdout.String(), "operator ") {
		t.Errorf("exit code %d: %s", code, stdout.String())
	}
}
