// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/emptypb"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// fieldsOfPod are the values that a kubelet would fill in.
var fieldsOfPod = map[string]string{
	"metadata.namespace": "shop", "metadata.name": "cart-5d8f7c9b6-x7k2p",
	"metadata.uid": "4f6c5a0e-2d5e-4a55-8f50-2b8d6f3a9c11", "spec.nodeName": "node-1.example",
}

// injectedWith returns the environment that a kubelet starts the broker of an injected
// pod with, and the arguments about traces.
func injectedWith(t *testing.T, traces template.Traces, annotations map[string]string) (environment, arguments []string) {
	t.Helper()
	return injectedBy(t, template.Template{Traces: traces}, annotations)
}

// injectedBy does the same for a template with all settings of collectors.
func injectedBy(t *testing.T, template template.Template, annotations map[string]string) (environment, arguments []string) {
	t.Helper()
	template.Image, template.SocketGroup, template.StatusPort, template.Version = "example.com/broker:1", 60471, 9470, "1"
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	maps.Copy(pod.Annotations, annotations)
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	injected, _, err := injection.Inject(pod, "shop", nil, template)
	if err != nil {
		t.Fatal(err)
	}
	var references []string
	for _, variable := range injected.Spec.InitContainers[0].Env {
		value := strings.NewReplacer(references...).Replace(variable.Value)
		if from := variable.ValueFrom; from != nil {
			value = fieldsOfPod[from.FieldRef.FieldPath]
		}
		references = append(references, "$("+variable.Name+")", value)
		environment = append(environment, variable.Name+"="+value)
	}
	arguments = slices.DeleteFunc(injected.Spec.InitContainers[0].Args, func(argument string) bool { return !strings.HasPrefix(argument, "--traces-") })
	return environment, arguments
}

// hashes makes calls without a parent.
func (b *broker) hashes(t *testing.T, calls int) {
	t.Helper()
	connection := b.connect()
	for range calls {
		if err := connection.Invoke(t.Context(), "/CryptoBroker.CryptoGrpc/HashData", newCaller(t).hash(traceContext{}), &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnInjectedBrokerExportsToACollectorWhoseAuthorityItGets(t *testing.T) {
	authority := newAuthority(t)
	certificate, key := authority.files(t, "collector")
	trusted, err := os.ReadFile(authority.file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(newAuthority(t).file)
	if err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			to := newSink(t)
			c := startCollector(t, to, fmt.Sprintf(", tls: {cert_file: %s, key_file: %s}", certificate, key))
			traces := template.Traces{Endpoint: "https://" + c.http, Protocol: protocol, CABundle: string(other) + string(trusted)}
			if protocol == "grpc" {
				traces.Endpoint = "https://" + c.grpc
			}
			environment, _ := injectedWith(t, traces, nil)
			b := startBroker(t, environment)
			b.hashes(t, 1)
			b.stop()
			if spans := to.receivedSpans(); len(spans) != 1 {
				t.Errorf("got %d spans, want 1:\n%s", len(spans), b.stderr.String())
			}
			traces.CABundle = string(other)
			environment, _ = injectedWith(t, traces, nil)
			b = startBroker(t, append(environment, "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_EXPORT_TIMEOUT=500"))
			b.hashes(t, 1)
			b.awaitOutput(&b.stderr, "the export of spans failed")
			if spans := to.receivedSpans(); len(spans) != 1 {
				t.Errorf("got %d spans by another authority, want none", len(spans)-1)
			}
		})
	}
}

func TestAnAnnotationSaysWhichCallsOfAPodHaveASpan(t *testing.T) {
	for sentence, test := range map[string]struct {
		annotations map[string]string
		spans       int
	}{
		"none":              {nil, 3},
		"no call":           {map[string]string{contract.TracesSamplerAnnotation: "always_off"}, 0},
		"a ratio of none":   {map[string]string{contract.TracesSamplerAnnotation: "parentbased_traceidratio", contract.TracesRatioAnnotation: "0"}, 0},
		"a ratio of all":    {map[string]string{contract.TracesSamplerAnnotation: "traceidratio", contract.TracesRatioAnnotation: "1"}, 3},
		"the chart's ratio": {map[string]string{contract.TracesSamplerAnnotation: "traceidratio"}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			to := newSink(t)
			c := startCollector(t, to, "")
			environment, arguments := injectedWith(t, template.Traces{Endpoint: "http://" + c.grpc, Protocol: "grpc", Sampler: "always_on", SamplerArgument: "0"}, test.annotations)
			b := startBroker(t, environment, arguments...)
			b.hashes(t, 3)
			b.stop()
			if spans := to.receivedSpans(); len(spans) != test.spans {
				t.Errorf("got %d spans, want %d", len(spans), test.spans)
			}
		})
	}
}

func TestASpanOfAnInjectedBrokerTellsItsPod(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		t.Run(protocol, func(t *testing.T) {
			to := newSink(t)
			c := startCollector(t, to, "")
			traces := template.Traces{Endpoint: "http://" + c.http, Protocol: protocol, Sampler: "parentbased_traceidratio", SamplerArgument: "1"}
			if protocol == "grpc" {
				traces.Endpoint = "http://" + c.grpc
			}
			environment, _ := injectedWith(t, traces, nil)
			b := startBroker(t, environment)
			b.hashes(t, 1)
			b.stop()
			if said := b.stderr.String(); strings.Contains(said, `"level":"WARN"`) {
				t.Errorf("the broker warns:\n%s", said)
			}
			spans := to.receivedSpans()
			if len(spans) != 1 {
				t.Fatalf("got %d spans, want 1", len(spans))
			}
			found := map[string]any{}
			for key, value := range spans[0].resource {
				if strings.HasPrefix(key, "k8s.") {
					found[key] = value
				}
			}
			want := map[string]any{
				"k8s.namespace.name": "shop", "k8s.pod.name": "cart-5d8f7c9b6-x7k2p",
				"k8s.pod.uid": "4f6c5a0e-2d5e-4a55-8f50-2b8d6f3a9c11", "k8s.node.name": "node-1.example", "k8s.container.name": "crypto-broker",
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("the span is of another pod (-want +found):\n%s", diff)
			}
		})
	}
}
