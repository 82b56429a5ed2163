// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// otherTemplate is the template of another version of the operator: every field of the broker's container differs from testTemplate.
func otherTemplate() template.Template {
	return template.Template{
		Image:       "localhost/crypto-broker/broker:0.0.9",
		SocketGroup: 60471,
		StatusPort:  9471,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")},
		},
		RequireFIPS: true,
		Traces:      template.Traces{Endpoint: "http://former-collector:4317"},
		Version:     "0.0.9",
	}
}

// beside has otherTemplate for the same namespace, and allows the same images.
func beside(common template.Template) template.Template {
	other := otherTemplate()
	other.AllowedImages = slices.Concat(common.AllowedImages, []string{common.Image})
	other.NamespaceUserIDs = common.NamespaceUserIDs
	return other
}

// admitted returns the pod that the API server makes of a pod and of Inject's answer.
func admitted(t *testing.T, pod *corev1.Pod, profiles []byte, common template.Template) *corev1.Pod {
	t.Helper()
	injected, _, err := Inject(pod, "shop", profiles, common)
	if err != nil {
		t.Fatal(err)
	}
	result := &corev1.Pod{}
	if err := json.Unmarshal(fixture.Patched(t, fixture.JSON(t, pod), pod, injected), result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestABrokerOfAnotherVersionBecomesThatOfThisOne(t *testing.T) {
	for _, golden := range goldenPods(t) {
		t.Run(golden.sentence, func(t *testing.T) {
			other := beside(golden.template)
			want := fixture.InNewPod(admitted(t, golden.pod, golden.profiles, golden.template))
			found := fixture.InNewPod(admitted(t, admitted(t, golden.pod, golden.profiles, other), golden.profiles, golden.template))
			if diff := cmp.Diff(want, found, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("not what a new pod gets (-want +found):\n%s", diff)
			}
		})
	}
}

func TestWhatAnInjectedPodBringsOfABrokerBecomesWhatTheOperatorMakes(t *testing.T) {
	keys := fixture.Annotated("keys", "broker-keys")
	side := fixture.Second(corev1.Container{Name: "side"})
	nothing := func(*corev1.Pod) {}
	socketOf := func(name string) corev1.VolumeMount {
		return corev1.VolumeMount{Name: "crypto-broker-socket", MountPath: "/tmp/open-crypto-broker", SubPath: name, ReadOnly: true}
	}
	tests := map[string]struct {
		// pod is the pod of the app's owner, and changed is a change of the injected pod.
		pod, changed func(*corev1.Pod)
		// want is the new pod whose broker the changed pod gets in the end.
		want func(*corev1.Pod)
	}{
		"another image":                  {changed: fixture.InBroker(func(c *corev1.Container) { c.Image = "example.com/evil:1" })},
		"no broker at all, but the rest": {changed: func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }},
		"no volumes":                     {changed: func(pod *corev1.Pod) { pod.Spec.Volumes = nil }},
		"another command, argument and user": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.Command = []string{"/bin/sh"}
			c.Args = append(c.Args, "--profiles-dir=/tmp")
			c.SecurityContext.RunAsUser = ptr.To[int64](1)
		})},
		"no arguments": {changed: fixture.InBroker(func(c *corev1.Container) { c.Args = nil })},
		"rights":       {changed: fixture.InBroker(func(c *corev1.Container) { c.SecurityContext.Privileged = ptr.To(true) })},
		"no sidecar":   {changed: fixture.InBroker(func(c *corev1.Container) { c.RestartPolicy = nil })},
		"a terminal":   {changed: fixture.InBroker(func(c *corev1.Container) { c.Stdin, c.TTY = true, true })},
		"a hook": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/evil"}}}}
		})},
		"a block device": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/x"}}
		})},
		"a port of the host": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: 80})
		})},
		"other profiles mounted over its own": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: "/etc/crypto-broker/profiles/Profiles.yaml"})
		})},
		"another program mounted over its own, by a path that is not absolute": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = slices.Insert(c.VolumeMounts, 0, corev1.VolumeMount{Name: "mine", MountPath: "broker", SubPath: "mine"})
		})},
		"the volume of sockets at another place": {changed: fixture.InBroker(func(c *corev1.Container) { c.VolumeMounts[0].MountPath = "/elsewhere" })},
		"a part of the volume of profiles":       {changed: fixture.InBroker(func(c *corev1.Container) { c.VolumeMounts[1].SubPath = "..data" })},
		"the volume of profiles twice": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "crypto-broker-profiles", MountPath: "/again"})
		})},
		"a claim to a device": {changed: fixture.InBroker(func(c *corev1.Container) { c.Resources.Claims = []corev1.ResourceClaim{{Name: "mine"}} })},
		"its configuration in the environment": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.Env = fixture.Env("CRYPTO_BROKER_SHUTDOWN_TIMEOUT", "0s")
		})},
		"its cryptography in the environment":  {changed: fixture.InBroker(func(c *corev1.Container) { c.Env = fixture.Env("GODEBUG", "rsa1024min=0") })},
		"another library loaded first":         {changed: fixture.InBroker(func(c *corev1.Container) { c.Env = fixture.Env("LD_PRELOAD", "/mine/x.so") })},
		"another configuration of OpenSSL":     {changed: fixture.InBroker(func(c *corev1.Container) { c.Env = fixture.Env("OPENSSL_CONF", "/mine/openssl.cnf") })},
		"libraries mounted over its own":       {changed: fixture.InBroker(mountingMine("/usr/lib/x86_64-linux-gnu"))},
		"the loader of programs mounted over":  {changed: fixture.InBroker(mountingMine("/lib64"))},
		"a list of libraries that are loaded":  {changed: fixture.InBroker(mountingMine("/etc/ld.so.preload"))},
		"a directory for OpenSSL mounted over": {changed: fixture.InBroker(mountingMine("/etc/ssl"))},
		"its spans sent elsewhere":             {changed: fixture.InBroker(func(c *corev1.Container) { c.Env = fixture.Env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4317") })},
		"an environment from elsewhere": {changed: fixture.InBroker(func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}
		})},
		"a startup probe that gives up early": {changed: fixture.InBroker(func(c *corev1.Container) { c.StartupProbe.FailureThreshold = 1 })},
		"no startup probe":                    {changed: fixture.InBroker(func(c *corev1.Container) { c.StartupProbe = nil })},
		"a socket volume on the node's disk": {changed: func(pod *corev1.Pod) {
			pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var"}}
		}},
		"profiles from another ConfigMap": {changed: func(pod *corev1.Pod) { pod.Spec.Volumes[1].Projected.Sources[1].ConfigMap.Name = "mine" }},
		"keys of another Secret":          {pod: keys, changed: func(pod *corev1.Pod) { pod.Spec.Volumes[2].Projected.Sources[0].Secret.Name = "mine" }},
		"other keys mounted over its own": {pod: keys, changed: fixture.InBroker(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: "/etc/crypto-broker/keys/mine"})
		})},
		"keys that no annotation asks for": {changed: fixture.With(corev1.Volume{Name: "crypto-broker-keys-1"})},
		"the broker's keys in the app":     {pod: keys, changed: fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-keys-1", MountPath: "/keys"})},
		"the profiles in the app":          {changed: fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-profiles", MountPath: "/profiles"})},
		"all sockets in the app":           {changed: fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-socket", MountPath: "/sockets"})},
		"a writable socket":                {changed: func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts[0].ReadOnly = false }},
		"a socket that was taken away":     {changed: func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts = nil }},
		"a socket that a bidirectional mount puts on the node": {changed: func(pod *corev1.Pod) {
			pod.Spec.Containers[0].VolumeMounts[0].MountPropagation = ptr.To(corev1.MountPropagationBidirectional)
		}},
		"a container with the socket of another":   {changed: fixture.Second(corev1.Container{Name: "second", VolumeMounts: []corev1.VolumeMount{socketOf("app")}}), want: fixture.Second(corev1.Container{Name: "second"})},
		"a container with a socket of its own":     {changed: fixture.Second(corev1.Container{Name: "second", VolumeMounts: []corev1.VolumeMount{socketOf("second")}}), want: fixture.Second(corev1.Container{Name: "second"})},
		"an annotation that was changed":           {changed: fixture.Annotated("profiles", "Default"), want: fixture.Annotated("profiles", "Default")},
		"an annotation that names one more":        {changed: fixture.Join(side, fixture.Annotated("containers", "app,side")), want: fixture.Join(side, fixture.Annotated("containers", "app,side"))},
		"an annotation that names one fewer":       {pod: side, changed: fixture.Annotated("containers", "side"), want: fixture.Join(side, fixture.Annotated("containers", "side"))},
		"an annotation with another socket's path": {changed: fixture.Annotated("socket-path", "/run/crypto"), want: fixture.Annotated("socket-path", "/run/crypto")},
		"the host's network": {
			changed: func(pod *corev1.Pod) { pod.Spec.HostNetwork = true },
			want:    func(pod *corev1.Pod) { pod.Spec.HostNetwork = true },
		},
		"processes that are shared": {
			changed: func(pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = ptr.To(true) },
			want:    func(pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = ptr.To(true) },
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if test.pod == nil {
				test.pod = nothing
			}
			if test.want == nil {
				test.want = test.pod
			}
			pod := admitted(t, fixture.PodWith(test.pod), []byte(fixture.ProfilesOfShop), testTemplate())
			test.changed(pod)
			found := admitted(t, pod, []byte(fixture.ProfilesOfShop), testTemplate())
			want := admitted(t, fixture.PodWith(test.want), []byte(fixture.ProfilesOfShop), testTemplate())
			// Their position does not matter here.
			for _, pod := range []*corev1.Pod{found, want} {
				sortByName(pod)
			}
			if diff := cmp.Diff(want.Spec, found.Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("not what a new pod gets (-want +found):\n%s", diff)
			}
		})
	}
}

func sortByName(pod *corev1.Pod) {
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	each(pod, func(_ string, container *corev1.Container) {
		slices.SortFunc(container.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	})
}

func TestWithoutTheStampABrokerIsOneThatThePodBrought(t *testing.T) {
	pod := injectedPodWith(t, func(pod *corev1.Pod) { delete(pod.Annotations, contract.InjectedAnnotation) })
	_, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("found the error %v, expected a refusal", err)
	}
	var want []string
	for _, place := range []string{
		`spec.initContainers[0].name: found "crypto-broker"`,
		`spec.volumes[0].name: found "crypto-broker-socket"`,
		`spec.volumes[1].name: found "crypto-broker-profiles"`,
		`spec.initContainers[0].volumeMounts[0].name: found "crypto-broker-socket"`,
		`spec.initContainers[0].volumeMounts[1].name: found "crypto-broker-profiles"`,
		`spec.containers[0].volumeMounts[0].name: found "crypto-broker-socket"`,
	} {
		want = append(want, place+" without the annotation cryptobroker.io/injected")
	}
	want[len(want)-1] += "; " + reserved
	if diff := cmp.Diff(want, refusal.Problems); diff != "" {
		t.Errorf("other sentences than expected (-want +found):\n%s", diff)
	}
}

func TestTheStampDoesNotExcuseWhatNoVersionMakes(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"a container of the app with the broker's name": {
			fixture.Second(corev1.Container{Name: "crypto-broker"}),
			`spec.containers[1].name: found "crypto-broker", expected another name; ` + reserved,
		},
		"an init container in front of the broker with a socket": {
			func(pod *corev1.Pod) {
				pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, corev1.Container{Name: "early", VolumeMounts: fixture.Mounts("crypto-broker-socket", contract.SocketDir)})
			},
			`spec.initContainers[0]: found the broker's socket in container "early", which ends before the broker starts; expected it after the container "crypto-broker"`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, _, err := Inject(injectedPodWith(t, test.change), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err == nil || err.Error() != test.want {
				t.Errorf("found %v, expected %s", err, test.want)
			}
		})
	}
}

// A newer API server sends fields that this program does not know, and other
// injectors may set them in what they added.
func TestARenewalKeepsUnknownFieldsOfWhatIsNotTheBrokers(t *testing.T) {
	pod := admitted(t, fixture.PodWith(fixture.Mounting(fixture.Mounts("data", "/data")...)), []byte(fixture.ProfilesOfShop), otherTemplate())
	pod.Spec.InitContainers[0].Env = append(pod.Spec.InitContainers[0].Env, fixture.Env("AWS_ROLE_ARN", "arn")...)
	pod.Spec.InitContainers[0].VolumeMounts = slices.Insert(pod.Spec.InitContainers[0].VolumeMounts, 0, fixture.Mounts("token", "/var/run/token")...)
	pod.Spec.Volumes = slices.Insert(pod.Spec.Volumes, 0, fixture.Empty("token"), fixture.Empty("data"))
	var document map[string]any
	if err := json.Unmarshal(fixture.JSON(t, pod), &document); err != nil {
		t.Fatal(err)
	}
	mark := func(list any) {
		for _, item := range list.([]any) {
			item.(map[string]any)["ofTheFuture"] = "kept"
		}
	}
	spec := document["spec"].(map[string]any)
	broker, app := spec["initContainers"].([]any)[0].(map[string]any), spec["containers"].([]any)[0].(map[string]any)
	for _, list := range []any{spec["volumes"], spec["initContainers"], spec["containers"], broker["env"], broker["volumeMounts"], app["volumeMounts"], app["env"]} {
		mark(list)
	}
	injected, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	patched := string(fixture.Patched(t, fixture.JSON(t, document), pod, injected))
	for _, want := range []string{
		`{"emptyDir":{},"name":"token","ofTheFuture":"kept"}`, `{"emptyDir":{},"name":"data","ofTheFuture":"kept"}`,
		`{"mountPath":"/var/run/token","name":"token","ofTheFuture":"kept"}`, `{"mountPath":"/data","name":"data","ofTheFuture":"kept"}`,
		`{"name":"AWS_ROLE_ARN","ofTheFuture":"kept","value":"arn"}`,
	} {
		if !strings.Contains(patched, want) {
			t.Errorf("found no %s in %s", want, patched)
		}
	}
}

// mountingMine mounts a volume of the pod in a container.
func mountingMine(at string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: at})
	}
}
