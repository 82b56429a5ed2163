// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/patch"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// testTemplate is an operator's with default values.
func testTemplate() template.Template {
	var common template.Template
	document, err := os.ReadFile("testdata/template.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(document, &common)
	}
	if err != nil {
		panic(err)
	}
	return common
}

// testTraces are the values of a chart that has brokers export spans.
func testTraces() template.Traces {
	return template.Traces{Endpoint: "http://collector.observability:4317", Protocol: "grpc", Sampler: "parentbased_traceidratio", SamplerArgument: "0.01"}
}

// goldenPod is a file of testdata/pods, with the other inputs of Inject.
type goldenPod struct {
	sentence string
	pod      *corev1.Pod
	profiles []byte
	template template.Template
}

// goldenPods reads all pods of testdata/pods.
func goldenPods(t *testing.T) []goldenPod {
	t.Helper()
	writeInjectedByOthers(t)
	var pods []goldenPod
	for _, golden := range fixture.GoldenPods(t, "testdata") {
		pod := goldenPod{sentence: golden.Sentence, pod: golden.Pod, profiles: golden.Profiles}
		golden.ReadTemplate(t, &pod.template)
		_, pod.template.NamespaceUserIDs = golden.NamespaceAnnotations["openshift.io/sa.scc.uid-range"]
		pods = append(pods, pod)
	}
	return pods
}

// writeInjectedByOthers writes the pods that other injectors change before and after the operator into files next to the golden pods.
func writeInjectedByOthers(t *testing.T) {
	t.Helper()
	for name, change := range otherInjectors {
		before := fixture.ReadPod(t, "testdata/pods/a-web-server.yaml")
		change(before)
		after, _, err := Inject(fixture.ReadPod(t, "testdata/pods/a-web-server.yaml"), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
		if err != nil {
			t.Fatal(err)
		}
		change(after)
		for when, pod := range map[string]*corev1.Pod{"before": before, "after": after} {
			file := "testdata/pods/" + name + "-" + when + "-us.yaml"
			document, err := yaml.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, document, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; make it with: go test ./webhook/injection -update", err)
			}
			if diff := cmp.Diff(string(want), string(document)); diff != "" {
				t.Fatalf("%s is not what the other injector makes (-found +made); go test ./webhook/injection -update writes it:\n%s", file, diff)
			}
		}
	}
}

func (g goldenPod) file() string { return "testdata/pods/" + g.sentence + ".golden.yaml" }

func TestInjectMakesTheGoldenPods(t *testing.T) {
	for _, golden := range goldenPods(t) {
		t.Run(golden.sentence, func(t *testing.T) {
			before := golden.pod.DeepCopy()
			injected, warnings, err := Inject(golden.pod, "shop", golden.profiles, golden.template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, golden.pod); diff != "" {
				t.Errorf("Inject changed its argument (-before +after):\n%s", diff)
			}

			document, err := yaml.Marshal(injected)
			if err != nil {
				t.Fatal(err)
			}
			var found bytes.Buffer
			for _, warning := range warnings {
				found.WriteString("# Warning: " + warning + "\n")
			}
			found.Write(document)
			if *update {
				if err := os.WriteFile(golden.file(), found.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden.file())
			if err != nil {
				t.Fatalf("%v; make it with: go test ./webhook/injection -update", err)
			}
			if diff := cmp.Diff(string(want), found.String()); diff != "" {
				t.Errorf("the pod is not the golden one (-want +found):\n%s", diff)
			}
		})
	}
}

func TestInjectingAGoldenPodAgainChangesNothing(t *testing.T) {
	for _, golden := range goldenPods(t) {
		t.Run(golden.sentence, func(t *testing.T) {
			once := fixture.ReadPod(t, golden.file())
			twice, _, err := Inject(once, "shop", golden.profiles, golden.template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("the second pass changed the pod (-once +twice):\n%s", diff)
			}
			if operations := patch.Between(once, twice); len(operations) > 0 {
				t.Errorf("the second pass made the patch %v, expected none", operations)
			}
		})
	}
}

func TestAGoldenPodIsAsRestrictedAsThePodItWasMadeOf(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	judge := func(pod *corev1.Pod, level psaapi.Level) policy.AggregateCheckResult {
		return policy.AggregateCheckResults(evaluator.EvaluatePod(
			psaapi.LevelVersion{Level: level, Version: psaapi.LatestVersion()}, &pod.ObjectMeta, &pod.Spec))
	}
	restricted := 0
	for _, golden := range goldenPods(t) {
		t.Run(golden.sentence, func(t *testing.T) {
			after := fixture.ReadPod(t, golden.file())
			for _, level := range []psaapi.Level{psaapi.LevelRestricted, psaapi.LevelBaseline} {
				before, result := judge(golden.pod, level), judge(after, level)
				if before.Allowed && level == psaapi.LevelRestricted {
					restricted++
				}
				for i, reason := range result.ForbiddenReasons {
					// If the pod was already forbidden, the reasons and the containers must be the same.
					if !slices.Contains(before.ForbiddenReasons, reason) || strings.Contains(result.ForbiddenDetails[i], contract.BrokerContainer) {
						t.Errorf("Pod Security %s forbids the pod after and not before: %s (%s)", level, reason, result.ForbiddenDetails[i])
					}
				}
			}
		})
	}
	if restricted < 20 {
		t.Errorf("%d pods passed before they were injected, expected most of them", restricted)
	}
}

func TestThePatchMakesTheGoldenPodAndKeepsFieldsThatAreUnknownHere(t *testing.T) {
	for _, golden := range goldenPods(t) {
		t.Run(golden.sentence, func(t *testing.T) {
			document := asDocument(t, golden.pod)
			markFuture(document)
			raw, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			injected, _, err := Inject(golden.pod, "shop", golden.profiles, golden.template)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]any{}
			if err := json.Unmarshal(fixture.Patched(t, raw, golden.pod, injected), &found); err != nil {
				t.Fatal(err)
			}

			// The broker's container must not have an unknown field.
			want := asDocument(t, injected)
			markFuture(want)
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("the patched document is not the injected pod (-want +found):\n%s", diff)
			}
		})
	}
}

// markFuture adds a field of a future version of Kubernetes to the spec and to every container except the broker's.
func markFuture(pod map[string]any) {
	spec := pod["spec"].(map[string]any)
	spec["fieldOfTomorrow"] = "spec"
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, item := range containers {
			container := item.(map[string]any)
			if container["name"] != "crypto-broker" {
				container["fieldOfTomorrow"] = container["name"]
			}
		}
	}
}

func asDocument(t *testing.T, pod *corev1.Pod) map[string]any {
	t.Helper()
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]any{}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document
}
