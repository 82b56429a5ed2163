// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// testTemplate is an operator's with default values.
func testTemplate() Template {
	return Template{
		Image:       "localhost/crypto-broker/broker:0.1.0",
		PullPolicy:  corev1.PullIfNotPresent,
		SocketGroup: 60471,
		StatusPort:  9470,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("32Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		LogLevel:      "info",
		Version:       "0.1.0",
		AllowedImages: []string{"registry.example/broker:1.2.3", "registry.example/fips/broker@sha256:" + strings.Repeat("5a", 32)},
	}
}

// testTraces are the values of a chart that has brokers export spans.
func testTraces() Traces {
	return Traces{Endpoint: "http://collector.observability:4317", Protocol: "grpc", Sampler: "parentbased_traceidratio", SamplerArgument: "0.01"}
}

// goldenPod is a file of testdata/pods and what Inject is given besides it.
type goldenPod struct {
	sentence string
	pod      *corev1.Pod
	profiles []byte
	template Template
}

// goldenPods reads all pods of testdata/pods.
func goldenPods(t *testing.T) []goldenPod {
	t.Helper()
	writeInjectedByOthers(t)
	files, err := filepath.Glob("testdata/pods/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pods []goldenPod
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		golden := goldenPod{
			sentence: strings.TrimSuffix(filepath.Base(file), ".yaml"),
			pod:      readPod(t, file),
			profiles: []byte(fixture.ProfilesOfShop),
			template: testTemplate(),
		}
		switch golden.sentence {
		case "a-pod-of-a-namespace-without-profiles", "a-pod-that-brings-a-snapshot-to-a-namespace-without-profiles":
			golden.profiles = nil
		case "a-pod-of-a-namespace-with-large-profiles":
			golden.profiles = bytes.Repeat([]byte("#"), maxSnapshotSize+1)
		case "a-pod-of-a-namespace-that-assigns-user-ids", "a-root-pod-of-a-namespace-that-assigns-user-ids":
			golden.template.NamespaceUserIDs = true
		case "a-pod-whose-broker-exports-spans":
			golden.template.Traces = testTraces()
		}
		pods = append(pods, golden)
	}
	if len(pods) == 0 {
		t.Fatal("found no pods in testdata/pods")
	}
	return pods
}

// writeInjectedByOthers keeps the pods that other injectors change before and
// after ours as files beside the others.
func writeInjectedByOthers(t *testing.T) {
	t.Helper()
	for name, change := range otherInjectors {
		before := readPod(t, "testdata/pods/a-web-server.yaml")
		change(before)
		after, _, err := Inject(readPod(t, "testdata/pods/a-web-server.yaml"), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
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
				t.Fatalf("%v; make it with: go test ./webhook -update", err)
			}
			if diff := cmp.Diff(string(want), string(document)); diff != "" {
				t.Fatalf("%s is not what the other injector makes (-found +made); go test ./webhook -update writes it:\n%s", file, diff)
			}
		}
	}
}

func readPod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return pod
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
				t.Fatalf("%v; make it with: go test ./webhook -update", err)
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
			once := readPod(t, golden.file())
			twice, _, err := Inject(once, "shop", golden.profiles, golden.template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("the second pass changed the pod (-once +twice):\n%s", diff)
			}
			if operations := patch(once, twice); len(operations) > 0 {
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
			after := readPod(t, golden.file())
			for _, level := range []psaapi.Level{psaapi.LevelRestricted, psaapi.LevelBaseline} {
				before, result := judge(golden.pod, level), judge(after, level)
				if before.Allowed && level == psaapi.LevelRestricted {
					restricted++
				}
				for i, reason := range result.ForbiddenReasons {
					// Where the pod was forbidden already, for no other reason and no other container.
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
			if err := json.Unmarshal(applied(t, raw, golden.pod, injected), &found); err != nil {
				t.Fatal(err)
			}

			// The broker's container is none that had an unknown field.
			want := asDocument(t, injected)
			markFuture(want)
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("the patched document is not the injected pod (-want +found):\n%s", diff)
			}
		})
	}
}

// markFuture gives every container but the broker's, and the spec, a field of
// a version of Kubernetes that is still to come.
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

// applied applies the patch from before to after to a document.
func applied(t *testing.T, document []byte, before, after *corev1.Pod) []byte {
	t.Helper()
	operations, err := json.Marshal(patch(before, after))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decoded.Apply(document)
	if err != nil {
		t.Fatalf("the patch %s does not apply: %v", operations, err)
	}
	return patched
}
