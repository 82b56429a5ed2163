// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/emptypb"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// fieldsOfPod are what a kubelet would fill in.
var fieldsOfPod = map[string]string{
	"metadata.namespace": "shop", "metadata.name": "cart-5d8f7c9b6-x7k2p",
	"metadata.uid": "4f6c5a0e-2d5e-4a55-8f50-2b8d6f3a9c11", "spec.nodeName": "node-1.example",
}

// environmentOf is the environment that a kubelet starts the broker of an injected
// pod with.
func environmentOf(t *testing.T, traces injection.Traces) (environment []string) {
	t.Helper()
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	injected, _, err := injection.Inject(pod, "shop", nil, injection.Template{
		Image: "example.com/broker:1", SocketGroup: 60471, StatusPort: 9470, Version: "1", Traces: traces,
	})
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
	return environment
}

func TestASpanOfAnInjectedBrokerTellsItsPod(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf", "http/json"} {
		t.Run(protocol, func(t *testing.T) {
			to := newSink(t)
			c := startCollector(t, to, "")
			traces := injection.Traces{Endpoint: "http://" + c.http, Protocol: protocol, Sampler: "parentbased_traceidratio", SamplerArgument: "1"}
			if protocol == "grpc" {
				traces.Endpoint = "http://" + c.grpc
			}
			b := startBroker(t, environmentOf(t, traces))
			if err := b.connect().Invoke(t.Context(), "/CryptoBroker.CryptoGrpc/HashData", newCaller(t).hash(traceContext{}), &emptypb.Empty{}); err != nil {
				t.Fatal(err)
			}
			b.stop()
			if said := b.stderr.String(); strings.Contains(said, `"level":"WARN"`) {
				t.Errorf("the broker warns:\n%s", said)
			}
			spans := to.got()
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
