// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// The changes that the API server and other webhooks make to a pod between two calls.
var foreignChanges = map[string]func(*corev1.Pod){
	"the API server's defaults": func(pod *corev1.Pod) {
		each(pod, func(_ string, c *corev1.Container) {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}}
		})
		pod.Spec.DNSPolicy = corev1.DNSClusterFirst
	},
	"the token of the service account": func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "kube-api-access-x7k2p"})
		each(pod, func(_ string, c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: "kube-api-access-x7k2p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
			})
		})
	},
	"a LimitRange with default limits": func(pod *corev1.Pod) {
		pod.Annotations["kubernetes.io/limit-ranger"] = "LimitRanger plugin set: cpu limit for init container crypto-broker"
		pod.Spec.InitContainers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	},
	"images that are always pulled": func(pod *corev1.Pod) {
		each(pod, func(_ string, c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways })
	},
	"a cloud identity for every container": func(pod *corev1.Pod) {
		each(pod, func(_ string, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::111122223333:role/app"})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: "aws-iam-token", ReadOnly: true, MountPath: "/var/run/secrets/eks.amazonaws.com/serviceaccount",
			})
		})
	},
	"a proxy as a sidecar in front": func(pod *corev1.Pod) {
		pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0,
			corev1.Container{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
	},
	"an agent behind, with a volume of its own": func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "agent", VolumeMounts: []corev1.VolumeMount{
			{Name: "agent-tmp", MountPath: "/tmp/open-crypto-broker"},
		}})
	},
	"containers in another order": func(pod *corev1.Pod) {
		slices.Reverse(pod.Spec.Containers)
		slices.Reverse(pod.Spec.InitContainers[1:])
	},
	"an agent that declares the status port": func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "agent", Ports: []corev1.ContainerPort{{ContainerPort: 9470}}})
	},
}

func injectedJob(t *testing.T) *corev1.Pod {
	t.Helper()
	job := fixture.ReadPod(t, "testdata/pods/a-job-with-init-containers-and-a-sidecar.yaml")
	injected, _, err := Inject(job, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	return injected
}

func TestASecondCallLeavesAloneWhatOthersDidInBetween(t *testing.T) {
	for name, change := range foreignChanges {
		t.Run(name, func(t *testing.T) {
			pod := injectedJob(t)
			change(pod)
			again, warnings, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(pod, again); diff != "" {
				t.Errorf("the second call changed the pod (-found +made):\n%s", diff)
			}
			if len(warnings) > 0 {
				t.Errorf("the second call warns %q, the first did not", warnings)
			}
		})
	}
}

func TestASecondCallFollowsTheProfiles(t *testing.T) {
	large := bytes.Repeat([]byte("#"), maxSnapshotSize+1)
	states := map[string][]byte{"none": nil, "small": []byte(fixture.ProfilesOfShop), "others": []byte("[]\n"), "large": large}
	for before, first := range states {
		for after, second := range states {
			t.Run("from "+before+" to "+after, func(t *testing.T) {
				pod, _, err := Inject(fixture.PodWith(), "shop", first, testTemplate())
				if err != nil {
					t.Fatal(err)
				}
				again, _, err := Inject(pod, "shop", second, testTemplate())
				if err != nil {
					t.Fatal(err)
				}
				want, _, err := Inject(fixture.PodWith(), "shop", second, testTemplate())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, again); diff != "" {
					t.Errorf("not what a first call makes (-want +found):\n%s", diff)
				}
				if patched := fixture.Patched(t, fixture.JSON(t, pod), pod, again); !fixture.EqualJSON(t, patched, fixture.JSON(t, again)) {
					t.Errorf("the patch makes %s", patched)
				}
			})
		}
	}
}

// A mesh sends HTTP probes through its proxy, which starts after the broker.
func TestAStartupProbeThatAMeshRedirectedRunsInTheContainer(t *testing.T) {
	pod := injectedJob(t)
	pod.Spec.InitContainers[0].StartupProbe.HTTPGet = &corev1.HTTPGetAction{
		Path: "/app-health/crypto-broker/startupz", Port: intstr.FromInt32(15020), Scheme: corev1.URISchemeHTTP,
	}
	again, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/broker", "health", "--socket", "/run/broker/fetch/crypto-broker-server.sock"}
	probe := again.Spec.InitContainers[0].StartupProbe
	if probe.HTTPGet != nil || probe.Exec == nil || !slices.Equal(probe.Exec.Command, want) {
		t.Fatalf("found the probe %v, expected one that runs %v", probe, want)
	}
	if patched := fixture.Patched(t, fixture.JSON(t, pod), pod, again); !fixture.EqualJSON(t, patched, fixture.JSON(t, again)) {
		t.Errorf("the patch makes %s", patched)
	}
	third, _, err := Inject(again, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(again, third); diff != "" {
		t.Errorf("the third call changed the pod (-second +third):\n%s", diff)
	}
}

func TestUserIDsThatThePlatformAssignedStay(t *testing.T) {
	template := testTemplate()
	template.NamespaceUserIDs = true
	pod, _, err := Inject(fixture.PodWith(), "shop", nil, template)
	if err != nil {
		t.Fatal(err)
	}
	pod.Spec.InitContainers[0].SecurityContext.RunAsUser = ptr.To[int64](1000700000)
	again, _, err := Inject(pod, "shop", nil, template)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pod, again); diff != "" {
		t.Errorf("the second call changed the pod (-found +made):\n%s", diff)
	}
	again, _, err = Inject(pod, "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if user := again.Spec.InitContainers[0].SecurityContext.RunAsUser; user == nil || *user != brokerUserID {
		t.Errorf("where nobody assigns user IDs, the broker runs as %v, expected %d", user, brokerUserID)
	}
}

func TestASnapshotLeavesRoomForTheOwnersAnnotations(t *testing.T) {
	tests := map[string]struct {
		owners int
		want   bool
	}{
		"few":                          {owners: 1 << 10, want: true},
		"as many as fit":               {owners: maxAnnotationsSize - annotationsReserve - 2*len(fixture.ProfilesOfShop) - 200, want: true},
		"so many that not both would":  {owners: maxAnnotationsSize - annotationsReserve, want: false},
		"as many as Kubernetes allows": {owners: maxAnnotationsSize - 200, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := fixture.PodWith(func(pod *corev1.Pod) {
				pod.Annotations["example.com/large"] = string(bytes.Repeat([]byte("x"), test.owners))
			})
			once, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if _, found := once.Annotations[contract.ProfilesSnapshotAnnotation]; found != test.want {
				t.Errorf("the pod has a snapshot: %t, expected %t", found, test.want)
			}
			twice, _, err := Inject(once, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("the second call changed the pod (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestASecondCallKeepsVariablesOfOthersAndTakesOtherTracesOut(t *testing.T) {
	template := testTemplate()
	template.Traces = testTraces()
	for sentence, test := range map[string]struct {
		change func(*corev1.Container)
		kept   []corev1.EnvVar
	}{
		"a variable of another injector": {change: func(c *corev1.Container) { c.Env = append(c.Env, fixture.Env("AWS_ROLE_ARN", "arn")...) }, kept: fixture.Env("AWS_ROLE_ARN", "arn")},
		"another collector":              {change: func(c *corev1.Container) { c.Env[5].Value = "http://elsewhere:4317" }},
		"another collector behind ours": {change: func(c *corev1.Container) {
			c.Env = append(c.Env, fixture.Env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4317")...)
		}},
		"another collector by a variable that comes before ours": {change: func(c *corev1.Container) {
			c.Env = append(c.Env, fixture.Env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://elsewhere:4317")...)
		}},
		"no spans at all":     {change: func(c *corev1.Container) { c.Env = append(c.Env, fixture.Env("OTEL_SDK_DISABLED", "true")...) }},
		"no pod in the spans": {change: func(c *corev1.Container) { c.Env = c.Env[4:] }},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod, _, err := Inject(fixture.PodWith(), "shop", nil, template)
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(pod.Spec.InitContainers[0].Env), test.kept...)
			test.change(&pod.Spec.InitContainers[0])
			if diff := cmp.Diff(want, admitted(t, pod, nil, template).Spec.InitContainers[0].Env); diff != "" {
				t.Errorf("other variables than expected (-want +found):\n%s", diff)
			}
		})
	}
}
