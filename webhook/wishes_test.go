// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// refusalOf is what Inject refuses a pod for.
func refusalOf(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	_, _, err := Inject(pod, "shop", []byte(profilesOfShop), testTemplate())
	if err == nil {
		return nil
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("found the error %v, expected a refusal", err)
	}
	return refusal.Problems
}

const allowedImages = "one of the images that the operator allows, letter by letter: localhost/crypto-broker/broker:0.1.0, registry.example/broker:1.2.3, " +
	"registry.example/fips/broker@sha256:5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"

func second(container corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers = append(pod.Spec.Containers, container) }
}

func TestAnAnnotationThatCannotBeRefusesThePod(t *testing.T) {
	at := func(name, rest string) string { return "metadata.annotations[cryptobroker.io/" + name + "]: " + rest }
	tests := map[string]struct {
		name, value string
		change      func(*corev1.Pod)
		want        string
	}{
		"an empty list of profiles":                {name: "profiles", value: "", want: `found "", expected names of profiles separated by single commas`},
		"a list of profiles with a hole":           {name: "profiles", value: "A,,B", want: `found "A,,B", expected names of profiles separated by single commas`},
		"a profile that is listed twice":           {name: "profiles", value: "A, B,A", want: `found "A, B,A", expected names of profiles separated by commas, each of them once; "A" is there twice`},
		"a profile with a semicolon":               {name: "profiles", value: "A;side=B", want: `found "A;side=B", expected names of profiles separated by commas, without a semicolon or a dollar sign`},
		"a profile with a dollar sign":             {name: "profiles", value: "$(HOME)", want: `found "$(HOME)", expected names of profiles separated by commas, without a semicolon or a dollar sign`},
		"a profile on two lines":                   {name: "profiles", value: "A\nB", want: `found "A\nB", expected names of profiles in printable characters`},
		"a profile whose name is too long":         {name: "profiles", value: strings.Repeat("p", 65), want: fmt.Sprintf("found %q, expected names of profiles of at most 64 bytes; %q is longer", strings.Repeat("p", 65), strings.Repeat("p", 65))},
		"profiles of a container that is not":      {name: "profiles.web", value: "A", want: `found "A", expected no such annotation: the pod has no container "web", its containers are app; one that another injector adds later is named in cryptobroker.io/containers, too`},
		"profiles of the broker itself":            {name: "profiles.crypto-broker", value: "A", want: `found "A", expected no such annotation: the pod has no container "crypto-broker", its containers are app; one that another injector adds later is named in cryptobroker.io/containers, too`},
		"no profiles of a container":               {name: "profiles.app", value: " ", want: `found " ", expected names of profiles separated by single commas`},
		"profiles of a container without a socket": {name: "profiles.side", value: "A", change: join(second(corev1.Container{Name: "side"}), annotated("containers", "app")), want: `found "A", expected no such annotation: cryptobroker.io/containers does not list the container "side", which so gets no socket`},
		"more profiles than the pod has":           {name: "profiles.app", value: "A,C", change: annotated("profiles", "A,B"), want: `found "A,C", expected some of the profiles in cryptobroker.io/profiles, which are A, B; "C" is not among them`},
		"profiles of a container that shares its processes": {
			name: "profiles.app", value: "A", change: func(pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = ptr.To(true) },
			want: `found "A", expected no such annotation: spec.shareProcessNamespace lets the pod's containers act for each other, so that they can't be told apart; cryptobroker.io/profiles holds for all of them`,
		},
		"profiles of a container that sees the host's processes": {
			name: "profiles.app", value: "A", change: func(pod *corev1.Pod) { pod.Spec.HostPID = true },
			want: `found "A", expected no such annotation: spec.hostPID lets the pod's containers act for each other, so that they can't be told apart; cryptobroker.io/profiles holds for all of them`,
		},
		"a container that can't be one":     {name: "containers", value: "app,../web", want: `found "app,../web", expected names of containers of the pod, which are app; it has no "../web"`},
		"no container":                      {name: "containers", value: "", want: `found "", expected names of containers separated by single commas`},
		"the broker as a container":         {name: "containers", value: "crypto-broker", want: `found "crypto-broker", expected names of containers of the pod, which are app; it has no "crypto-broker"`},
		"a relative path":                   {name: "socket-path", value: "run/broker", want: `found "run/broker", expected an absolute path such as /tmp/open-crypto-broker`},
		"a path with a slash at the end":    {name: "socket-path", value: "/run/crypto/", want: `found "/run/crypto/", expected the path without what is superfluous in it, "/run/crypto"`},
		"a path that goes up":               {name: "socket-path", value: "/run/../etc", want: `found "/run/../etc", expected the path without what is superfluous in it, "/etc"`},
		"the root":                          {name: "socket-path", value: "/", want: `found "/", expected a directory below /, such as /tmp/open-crypto-broker`},
		"a path with a colon":               {name: "socket-path", value: "/run:ro", want: `found "/run:ro", expected a path of printable characters without a colon or a dollar sign`},
		"a path with a variable":            {name: "socket-path", value: "/run/$(HOME)", want: `found "/run/$(HOME)", expected a path of printable characters without a colon or a dollar sign`},
		"a path of the system":              {name: "socket-path", value: "/proc/self", want: `found "/proc/self", expected a path outside of /proc, /sys, /dev, which the system makes`},
		"a path that is too long":           {name: "socket-path", value: "/" + strings.Repeat("p", 81), want: fmt.Sprintf("found %q, expected at most 81 bytes, since the path of a socket in there has at most 107; it has 82", "/"+strings.Repeat("p", 81))},
		"CPU that is no quantity":           {name: "cpu-request", value: "much", want: `found "much", expected an amount of CPU from 1m on, in whole thousandths, such as 100m or 1`},
		"no CPU":                            {name: "cpu-request", value: "0", want: `found "0", expected an amount of CPU from 1m on, in whole thousandths, such as 100m or 1`},
		"less than nothing":                 {name: "cpu-limit", value: "-1", want: `found "-1", expected an amount of CPU from 1m on, in whole thousandths, such as 100m or 1`},
		"CPU in millionths":                 {name: "cpu-limit", value: "1500u", want: `found "1500u", expected an amount of CPU from 1m on, in whole thousandths, such as 100m or 1`},
		"a CPU limit below the default":     {name: "cpu-limit", value: "5m", want: `found "5m", expected at least what the broker requests, 10m, or a lower cryptobroker.io/cpu-request beside it`},
		"a CPU request above its limit":     {name: "cpu-request", value: "2", change: annotated("cpu-limit", "1"), want: `found "2", expected at most the limit of the broker, 1, or a higher cryptobroker.io/cpu-limit beside it`},
		"memory in thousandths":             {name: "memory-limit", value: "400m", want: `found "400m", expected an amount of memory in bytes, such as 64Mi or 1Gi`},
		"memory that is no quantity":        {name: "memory-limit", value: "64MB", want: `found "64MB", expected an amount of memory in bytes, such as 64Mi or 1Gi`},
		"too little memory":                 {name: "memory-limit", value: "16Mi", want: `found "16Mi", expected at least 32Mi: a broker takes half of that idle, and requests need room beside`},
		"a memory request above the limit":  {name: "memory-request", value: "256Mi", want: `found "256Mi", expected at most the limit of the broker, 128Mi, or a higher cryptobroker.io/memory-limit beside it`},
		"resources beside those of the pod": {name: "memory-limit", value: "64Mi", change: func(pod *corev1.Pod) { pod.Spec.Resources = &corev1.ResourceRequirements{} }, want: `found "64Mi", expected no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part`},
		"a log level in capitals":           {name: "log-level", value: "DEBUG", want: `found "DEBUG", expected debug, info, warn or error`},
		"a port that is no number":          {name: "metrics-port", value: "http", want: `found "http", expected a port from 1024 to 65535`},
		"a port of the system":              {name: "metrics-port", value: "80", want: `found "80", expected a port from 1024 to 65535`},
		"a port beyond the last":            {name: "metrics-port", value: "65536", want: `found "65536", expected a port from 1024 to 65535`},
		"a port that the app has": {
			name: "metrics-port", value: "9090", change: func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9090}} },
			want: `found "9090", expected a port that no other container declares, as spec.containers[0].ports[0] of container "app" does`,
		},
		"a port on the host":                            {name: "metrics-port", value: "9090", change: func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }, want: `found "9090", expected no such annotation: the pod uses the host's network, where its broker opens no port`},
		"a Secret that cannot be":                       {name: "image-pull-secret", value: "My Secret", want: `found "My Secret", expected the name of a Secret in the pod's namespace`},
		"no Secret with keys":                           {name: "keys", value: "", want: `found "", expected names of Secrets in the pod's namespace separated by single commas`},
		"a Secret with keys that cannot be":             {name: "keys", value: "a, B", want: `found "a, B", expected names of Secrets in the pod's namespace; "B" can't be one`},
		"a Secret with keys of a path":                  {name: "keys", value: "../a", want: `found "../a", expected names of Secrets in the pod's namespace; "../a" can't be one`},
		"a Secret with keys twice":                      {name: "keys", value: "a,a", want: `found "a,a", expected names of Secrets in the pod's namespace separated by commas, each of them once; "a" is there twice`},
		"another tag of an image that is allowed":       {name: "image", value: "registry.example/broker:1.2.3-debug", want: `found "registry.example/broker:1.2.3-debug", expected ` + allowedImages},
		"an image that is allowed, without its tag":     {name: "image", value: "registry.example/broker", want: `found "registry.example/broker", expected ` + allowedImages},
		"an image that begins like one that is allowed": {name: "image", value: "registry.example/broker:1.2.3/evil:1", want: `found "registry.example/broker:1.2.3/evil:1", expected ` + allowedImages},
		"an image of a digest that is not allowed":      {name: "image", value: "registry.example/broker:1.2.3@sha256:" + strings.Repeat("5a", 32), want: fmt.Sprintf("found %q… (101 bytes), expected ", ("registry.example/broker:1.2.3@sha256:" + strings.Repeat("5a", 32))[:100]) + allowedImages},
		"no image":                   {name: "image", value: "", want: `found "", expected ` + allowedImages},
		"two Secrets":                {name: "image-pull-secret", value: "a,b", want: `found "a,b", expected the name of a Secret in the pod's namespace`},
		"more profiles than a bound": {name: "profiles", value: numbered(101), want: fmt.Sprintf("found %q… (%d bytes), expected at most 100 names of profiles; there are 101", numbered(101)[:100], len(numbered(101)))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(annotated(test.name, test.value))
			if test.change != nil {
				test.change(pod)
			}
			if diff := cmp.Diff([]string{at(test.name, test.want)}, refusalOf(t, pod)); diff != "" {
				t.Errorf("(-want +found):\n%s", diff)
			}
		})
	}
}

func join(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, change := range changes {
			change(pod)
		}
	}
}

func numbered(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("profile-%d", i))
	}
	return strings.Join(names, ",")
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
			problems := refusalOf(t, podWith(annotated(found, "x")))
			if len(problems) != 1 || !strings.HasPrefix(problems[0], "metadata.annotations[cryptobroker.io/"+found+"]: found an unknown annotation, expected one of cryptobroker.io/inject, ") {
				t.Fatalf("found the problems %q", problems)
			}
			_, suggestion, _ := strings.Cut(problems[0], "; did you mean cryptobroker.io/")
			if meant != "" {
				meant += "?"
			}
			if suggestion != meant {
				t.Errorf("suggested %q, expected %q", suggestion, meant)
			}
		})
	}
}

func TestEveryProblemWithAnnotationsIsToldAtOnce(t *testing.T) {
	pod := podWith(annotated("log-level", "loud"), annotated("cpu-limit", "x"), annotated("profils", "A"))
	if problems := refusalOf(t, pod); len(problems) != 3 {
		t.Errorf("found %d problems, expected 3: %q", len(problems), problems)
	}
}

func TestAnnotationsOfOthersDoNotCount(t *testing.T) {
	pod := podWith(func(pod *corev1.Pod) {
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
	pod, _, err := Inject(podWith(annotated("cpu-limit", "500m"), annotated("memory-request", "64Mi")), "shop", nil, template)
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
	plain, _, err := Inject(podWith(), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	chosen, _, err := Inject(podWith(annotated("log-level", "debug"), annotated("memory-limit", "1Gi"), annotated("socket-path", "/run/x")), "shop", nil, testTemplate())
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
		return mounting(corev1.VolumeMount{Name: "data", MountPath: mountPath})
	}
	for name, test := range map[string]struct {
		socketPath string
		change     func(*corev1.Pod)
		refused    bool
	}{
		"at the place of a volume": {"/data", at("/data"), true},
		"above a volume":           {"/data", at("/data/files"), true},
		"in a volume":              {"/data/broker", at("/data"), false},
		"in a read-only volume":    {"/data/broker", mounting(corev1.VolumeMount{Name: "data", MountPath: "/data", ReadOnly: true}), true},
		"at the place of a block device": {"/disk", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "d", DevicePath: "/disk"}}
		}, true},
		"elsewhere, with a volume at the default": {"/run/broker", at("/tmp/open-crypto-broker"), false},
		"where a container without a socket has one": {"/data", join(
			second(corev1.Container{Name: "side", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}), annotated("containers", "app")), false},
	} {
		t.Run(name, func(t *testing.T) {
			problems := refusalOf(t, podWith(test.change, annotated("socket-path", test.socketPath)))
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
	pod, _, err := Inject(podWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = []corev1.EnvVar{own} }), "shop", nil, testTemplate())
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
	twice, _, err := Inject(taken, "shop", []byte(profilesOfShop), testTemplate())
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
		"all are there": {profiles, []func(*corev1.Pod){annotated("profiles", "Default,Signing"), annotated("profiles.app", "Signing")}, nil},
		"one is not": {profiles, []func(*corev1.Pod){annotated("profiles", "Default,Signng")}, []string{
			`metadata.annotations[cryptobroker.io/profiles]: found profiles that namespace "shop" does not have now: "Signng"; calls with them fail until it does`,
		}},
		"one of a container is not": {profiles, []func(*corev1.Pod){annotated("profiles.app", "default")}, []string{
			`metadata.annotations[cryptobroker.io/profiles.app]: found profiles that namespace "shop" does not have now: "default"; calls with them fail until it does`,
		}},
		"many are not": {profiles, []func(*corev1.Pod){annotated("profiles", "a,b,c,d,e,f,g")}, []string{
			`metadata.annotations[cryptobroker.io/profiles]: found profiles that namespace "shop" does not have now: "a", "b", "c", "d", "e", 2 more; calls with them fail until it does`,
		}},
		"the profiles could not be read": {[]byte{}, []func(*corev1.Pod){annotated("profiles", "a")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := Inject(podWith(test.changes...), "shop", test.profiles, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, warnings); diff != "" {
				t.Errorf("(-want +found):\n%s", diff)
			}
		})
	}
}

// An autoscaler that looks at CPU or memory counts nothing for a pod with a
// container that requests none.
func TestEveryBrokerRequestsWhatAutoscalersCount(t *testing.T) {
	brokers := 0
	for _, golden := range goldenPods(t) {
		for _, container := range readPod(t, golden.file()).Spec.InitContainers {
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
