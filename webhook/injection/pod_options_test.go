// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// refusalOf returns the message with which Inject refuses a pod.
func refusalOf(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	_, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err == nil {
		return nil
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("found the error %v, expected a refusal", err)
	}
	return refusal.Problems
}

// refusedAnnotation is an entry of testdata/refused-annotations.yaml, by which the
// policies of the chart are tested, too.
type refusedAnnotation struct {
	Case       string         `json:"case"`
	Annotation string         `json:"annotation"`
	Value      string         `json:"value"`
	Pod        map[string]any `json:"pod"`
	Sentence   string         `json:"sentence"`
}

func TestAnAnnotationThatCannotBeRefusesThePod(t *testing.T) {
	document, err := os.ReadFile("testdata/refused-annotations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests []refusedAnnotation
	if err := yaml.UnmarshalStrict(document, &tests); err != nil {
		t.Fatal(err)
	}
	if len(tests) == 0 {
		t.Fatal("found no refused annotations")
	}
	for _, test := range tests {
		t.Run(test.Case, func(t *testing.T) {
			pod := patched(t, fixture.PodWith(fixture.Annotated(test.Annotation, test.Value)), test.Pod)
			want := "metadata.annotations[cryptobroker.io/" + test.Annotation + "]: " + test.Sentence
			if diff := cmp.Diff([]string{want}, refusalOf(t, pod)); diff != "" {
				t.Errorf("(-want +found):\n%s", diff)
			}
		})
	}
}

// patched is the pod with a strategic merge patch.
func patched(t *testing.T, pod *corev1.Pod, patch map[string]any) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	document, err := strategicpatch.StrategicMergePatch(before, change, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	after := &corev1.Pod{}
	if err := json.Unmarshal(document, after); err != nil {
		t.Fatal(err)
	}
	return after
}

func TestARowOfTheTableIsAllThatAnArgumentOfTheBrokerNeeds(t *testing.T) {
	before := annotationsRead
	t.Cleanup(func() { annotationsRead = before })
	annotationsRead = append(slices.Clone(before), podAnnotation{name: "cryptobroker.io/drain", values: annotation.OneOf("soon", "late"), argument: "drain"})

	pod, _, err := Inject(fixture.PodWith(fixture.Annotated("drain", "late")), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if found := pod.Spec.InitContainers[0].Args; !slices.Contains(found, "--drain=late") {
		t.Errorf("the broker has the arguments %q, expected --drain=late", found)
	}
	want := []string{`metadata.annotations[cryptobroker.io/drain]: found "never", expected soon or late`}
	if diff := cmp.Diff(want, refusalOf(t, fixture.PodWith(fixture.Annotated("drain", "never")))); diff != "" {
		t.Errorf("(-want +found):\n%s", diff)
	}
	for _, expression := range []string{
		"['--drain=', variables.annotations[?'cryptobroker.io/drain'].orValue('')]",
		"value in ['soon', 'late']",
		"', expected soon or late'",
	} {
		if !strings.Contains(ChartTemplate(), expression) {
			t.Errorf("the template of the chart has no %s", expression)
		}
	}
}

func TestAnUnknownAnnotationRefusesThePodAndASimilarOneIsNamed(t *testing.T) {
	for found, meant := range map[string]string{
		"profile":          "profiles",
		"Profiles":         "profiles",
		"container":        "containers",
		"memory_limit":     "memory-limit",
		"memory-limits":    "memory-limit",
		"cpu-requests":     "cpu-request",
		"socketpath":       "socket-path",
		"loglevel":         "log-level",
		"metric-port":      "metrics-port",
		"profile.app":      "profiles.app",
		"injected-by":      "",
		"allow-weaker":     "",
		"app.profiles":     "",
		"anything/at-all":  "",
		"imagepullsecret":  "image-pull-secret",
		"image-pullsecret": "image-pull-secret",
	} {
		t.Run(found, func(t *testing.T) {
			problems := refusalOf(t, fixture.PodWith(fixture.Annotated(found, "x")))
			if meant != "" {
				meant = " (did you mean cryptobroker.io/" + meant + "?)"
			}
			if want := "metadata.annotations[cryptobroker.io/" + found + "]: found an unknown annotation" + meant + "; expected one of cryptobroker.io/inject, "; len(problems) != 1 || !strings.HasPrefix(problems[0], want) {
				t.Fatalf("found the problems %q, expected %q", problems, want)
			}
		})
	}
}

func TestTheWayOutOfSeveralProblemsIsSaidOnce(t *testing.T) {
	for sentence, test := range map[string]struct {
		pod    *corev1.Pod
		wayOut string
	}{
		"unknown annotations": {fixture.PodWith(fixture.Annotated("profils", "A"), fixture.Annotated("key", "a"), fixture.Annotated("log-level", "loud"), fixture.Annotated("anything", "a")), "; expected one of cryptobroker.io/inject, profiles, "},
		"reserved names": {fixture.PodWith(fixture.With(corev1.Volume{Name: "crypto-broker-socket"}, corev1.Volume{Name: "crypto-broker-profiles"},
			corev1.Volume{Name: "crypto-broker-keys-1"})), "; " + reserved},
	} {
		t.Run(sentence, func(t *testing.T) {
			problems := refusalOf(t, test.pod)
			if said := strings.Join(problems, "; "); len(problems) < 3 || strings.Count(said, test.wayOut) != 1 {
				t.Errorf("%q is not said once in %q", test.wayOut, problems)
			}
		})
	}
}

func TestEveryProblemWithAnnotationsIsToldAtOnce(t *testing.T) {
	pod := fixture.PodWith(fixture.Annotated("log-level", "loud"), fixture.Annotated("cpu-limit", "x"), fixture.Annotated("profils", "A"))
	if problems := refusalOf(t, pod); len(problems) != 3 {
		t.Errorf("found %d problems, expected 3: %q", len(problems), problems)
	}
}

func TestAnnotationsOfOthersDoNotCount(t *testing.T) {
	pod := fixture.PodWith(func(pod *corev1.Pod) {
		pod.Annotations["inject.cryptobroker.io/x"] = "y"
		pod.Annotations["cryptobroker.io.example.com/x"] = "y"
		pod.Annotations["example.com/profiles"] = ""
	})
	if problems := refusalOf(t, pod); len(problems) > 0 {
		t.Errorf("refused: %q", problems)
	}
}

func TestACPULimitAloneNeedsNoRequest(t *testing.T) {
	template := testTemplate()
	template.Resources = corev1.ResourceRequirements{}
	pod, _, err := Inject(fixture.PodWith(fixture.Annotated("cpu-limit", "500m"), fixture.Annotated("memory-request", "64Mi")), "shop", nil, template)
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
	}
	if diff := cmp.Diff(want, pod.Spec.InitContainers[0].Resources); diff != "" {
		t.Errorf("(-want +found):\n%s", diff)
	}
	if len(template.Resources.Limits)+len(template.Resources.Requests) > 0 {
		t.Errorf("the pod changed the template: %v", template.Resources)
	}
}

func TestTheStampDoesNotDependOnWhatAPodChooses(t *testing.T) {
	plain, _, err := Inject(fixture.PodWith(), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	chosen, _, err := Inject(fixture.PodWith(fixture.Annotated("log-level", "debug"), fixture.Annotated("memory-limit", "1Gi"), fixture.Annotated("socket-path", "/run/x")), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	const stamp = "cryptobroker.io/injected"
	if plain.Annotations[stamp] != chosen.Annotations[stamp] {
		t.Errorf("the stamps are %q and %q, expected the same", plain.Annotations[stamp], chosen.Annotations[stamp])
	}
}

func TestTheSocketIsMountedWhereNothingElseIs(t *testing.T) {
	at := func(mountPath string) func(*corev1.Pod) {
		return fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: mountPath})
	}
	for name, test := range map[string]struct {
		socketPath string
		change     func(*corev1.Pod)
		refused    bool
	}{
		"at the place of a volume": {"/data", at("/data"), true},
		"above a volume":           {"/data", at("/data/files"), true},
		"in a volume":              {"/data/broker", at("/data"), false},
		"in a read-only volume":    {"/data/broker", fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/data", ReadOnly: true}), true},
		"at the place of a block device": {"/disk", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "d", DevicePath: "/disk"}}
		}, true},
		"elsewhere, with a volume at the default": {"/run/broker", at("/tmp/open-crypto-broker"), false},
		"where a container without a socket has one": {"/data", fixture.Join(
			fixture.Second(corev1.Container{Name: "side", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}), fixture.Annotated("containers", "app")), false},
	} {
		t.Run(name, func(t *testing.T) {
			problems := refusalOf(t, fixture.PodWith(test.change, fixture.Annotated("socket-path", test.socketPath)))
			if refused := len(problems) > 0; refused != test.refused {
				t.Errorf("refused is %t: %q", refused, problems)
			}
			if test.refused && !strings.Contains(problems[0], "socket") {
				t.Errorf("the sentence %q does not tell why", problems[0])
			}
		})
	}
}

func TestAVariableThatTheContainerSetsStays(t *testing.T) {
	own := corev1.EnvVar{Name: "CRYPTO_BROKER_SOCKET", Value: "/elsewhere.sock"}
	pod, _, err := Inject(fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = []corev1.EnvVar{own} }), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if env := pod.Spec.Containers[0].Env; !slices.Equal(env, []corev1.EnvVar{own}) {
		t.Errorf("found the variables %v, expected only the container's own", env)
	}
}

func TestAVariableThatAnotherWebhookTookAwayComesBack(t *testing.T) {
	once := injectedPodWith(t)
	taken := once.DeepCopy()
	taken.Spec.Containers[0].Env = nil
	twice, _, err := Inject(taken, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("(-once +twice):\n%s", diff)
	}
}

func TestProfilesThatTheNamespaceDoesNotHaveAreWarnedOf(t *testing.T) {
	profiles := []byte("- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n- Name: Signing\n  API: {SignData: {SignAlg: ed25519}}\n")
	for name, test := range map[string]struct {
		profiles []byte
		changes  []func(*corev1.Pod)
		want     []string
	}{
		"all are there": {profiles, []func(*corev1.Pod){fixture.Annotated("profiles", "Default,Signing"), fixture.Annotated("profiles.app", "Signing")}, nil},
		"one is not": {profiles, []func(*corev1.Pod){fixture.Annotated("profiles", "Default,Signng")}, []string{
			`metadata.annotations[cryptobroker.io/profiles]: found profiles that namespace "shop" does not have now: "Signng"; calls with these profiles fail until the namespace has them`,
		}},
		"one of a container is not": {profiles, []func(*corev1.Pod){fixture.Annotated("profiles.app", "default")}, []string{
			`metadata.annotations[cryptobroker.io/profiles.app]: found profiles that namespace "shop" does not have now: "default" (did you mean "Default"?); calls with these profiles fail until the namespace has them`,
		}},
		"many are not": {profiles, []func(*corev1.Pod){fixture.Annotated("profiles", "a,b,c,d,e,f,g")}, []string{
			`metadata.annotations[cryptobroker.io/profiles]: found profiles that namespace "shop" does not have now: "a", "b", "c", "d", "e", 2 more; calls with these profiles fail until the namespace has them`,
		}},
		"the profiles could not be read": {[]byte{}, []func(*corev1.Pod){fixture.Annotated("profiles", "a")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := Inject(fixture.PodWith(test.changes...), "shop", test.profiles, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, warnings); diff != "" {
				t.Errorf("(-want +found):\n%s", diff)
			}
		})
	}
}

// An autoscaler for CPU or memory ignores a pod if one of its containers has no request.
func TestEveryBrokerRequestsWhatAutoscalersCount(t *testing.T) {
	brokers := 0
	for _, golden := range goldenPods(t) {
		for _, container := range fixture.ReadPod(t, golden.file()).Spec.InitContainers {
			requests := container.Resources.Requests
			if isBroker(container) && golden.pod.Spec.Resources == nil {
				brokers++
				if requests.Cpu().IsZero() || requests.Memory().IsZero() {
					t.Errorf("%s: the broker requests %v, expected CPU and memory", golden.sentence, requests)
				}
			}
		}
	}
	if brokers < 20 {
		t.Errorf("found %d brokers in the golden pods, expected most to have one", brokers)
	}
}
