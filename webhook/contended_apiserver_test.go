// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// contendedPod returns a random pod with annotations that are right and wrong, and with parts that collide with those of the
// broker.
func contendedPod(t *testing.T, r *rand.Rand) *corev1.Pod {
	t.Helper()
	pod := freePod(r)
	if r.Intn(12) == 0 {
		copyOfInjected(t, r, pod)
	}
	switch r.Intn(12) {
	case 0, 1:
		delete(pod.Annotations, contract.InjectAnnotation)
	case 2:
		fixture.Asking([]string{"false", "True", "", "true "}[r.Intn(4)])(pod)
	}
	// Some pods have few particulars, so that injection goes on to its end, and some have many.
	one := []int{15, 50, 200}[r.Intn(3)]
	values := annotationValues(r, pod)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if r.Intn(one) == 0 {
			pod.Annotations[name] = values[name][r.Intn(len(values[name]))]
		}
	}
	for _, change := range collisions {
		if r.Intn(2*one) == 0 {
			change(r, pod)
		}
	}
	return pod
}

// copyOfInjected makes the pod a copy of an injected one, sometimes with another broker.
func copyOfInjected(t *testing.T, r *rand.Rand, pod *corev1.Pod) {
	t.Helper()
	common := []template.Template{testTemplate(), testTemplate(), otherTemplate()}[r.Intn(3)]
	copied, _, err := injection.Inject(pod, "shop", nil, common)
	if err != nil {
		return // an annotation does not fit: the pod is a new one
	}
	if r.Intn(4) == 0 {
		fixture.InBroker(func(c *corev1.Container) { c.Env = append(c.Env, fixture.Env("GODEBUG", "fips140=off")...) })(copied)
	}
	*pod = *copied
}

// annotationValues returns values of annotations, with many at the limits of what is accepted.
func annotationValues(r *rand.Rand, pod *corev1.Pod) map[string][]string {
	var names []string
	fixture.Each(pod, func(_ string, c *corev1.Container) { names = append(names, c.Name) })
	some := names[:1+r.Intn(len(names))]
	profiles := []string{"Default", "Default, Signing", "Größe 1, ключ", "", "A,,B", "A,A", "A, A", "A;B", "$(X)", "A\tB", "A,\u00a0B", "A\u200bB", "A\u2028B", "\U0001f511", "A\u0301", "A\ue000B",
		strings.Repeat("p", 64), strings.Repeat("p", 65), strings.Repeat("ö", 32), strings.Repeat("ö", 33), fixture.Repeated(100, "p%d,"), fixture.Repeated(101, "p%d,")}
	cpu := []string{"1m", "50m", "0.25", "1", "2", "1.0000", "1.0005", "1e3", "1E3", "1e-3", "1e-4", "1500u", "1500000u", "100n", "1k", "1Ki", "1M", "1000001", "1G", "1T", "10P", "1E", "10E", "0", "0m", "-1", "-1m", "+1", ".5", "5.", "",
		" 1", "much", "0x10", "1e30", "0.0000000001", "1.0000000001", "100.000000001", "1000000000000.0001", "9223372036854775807", "9223372036854775808", "9007199254740.993", "1mm"}
	memory := []string{"32Mi", "64Mi", "128Mi", "256Mi", "33554431", "33554432", "33554432.5", "33554432.000000001", "33554432.0000000001", "1.5Gi", "0.1G", "0.1Gi", "1e9", "128974848000m", "128974848001m", "1Ti", "1024Ti", "1025Ti", "1Pi", "1.5Pi", "2P", "1Ei",
		"7Ei", "8Ei", "9E", "16E", "9223372036854775807", "9223372036854775808", "9007199254740993", "0", "-64Mi", "+64Mi", "64MiB", "64mi", "", "much"}
	values := map[string][]string{
		"profiles": profiles, "profiles." + some[len(some)-1]: profiles, "profiles.web": profiles, "profiles.crypto-broker": {"Default"},
		"containers": {strings.Join(some, ","), strings.Join(some, " , "), strings.Join(some, ","), "later," + some[0], "../web", "crypto-broker", "", some[0] + "," + some[0], "Upper", some[0] + ",",
			"\u00a0" + some[0], fixture.Repeated(100, "c%d,"), fixture.Repeated(101, "c%d,")},
		"socket-path": {"/run/crypto", "/srv", "/data", "/tmp", contract.SocketDir, "/data/x", "/run/../etc", "/run/./x", "/", "run", "/run/", "/run//x", "/proc", "/proc/x", "/dev", "/device", "/sys/x", "/a:b", "/ключ é", "/run/a\u200bb",
			"/run/a\nb", "/run/$(A)", "/run/...", "/run/..x", "/" + strings.Repeat("p", 80), "/" + strings.Repeat("p", 81), "", " /run"},
		"cpu-request": cpu, "cpu-limit": cpu, "memory-request": memory, "memory-limit": memory,
		"log-level":      {"debug", "info", "warn", "error", "DEBUG", ""},
		"traces-sampler": {"always_on", "traceidratio", "parentbased_traceidratio", "parentbased", ""},
		"traces-ratio":   {"0", "1", "0.5", "0.123456789", "0.1234567890", "1.0", ".5", "1e-3", "-0", ""},
		"metrics-port":   {"1024", "1023", "09471", "9471", "9470", "+9471", "65535", "65536", "999999", "0x2400", "9471 ", ""},
		"session-gateway": {"8443:8080", "8443:8080", "8443:8443", "80:8080", "8080:80", "9470:8080", "8443:9470", "9471:8080", "8443", "8443:8080:1", "08443:8080", "65535:65535", "65536:1", "8443:65536", "8443:0", "99999:99999",
			":", ""},
		"session-profile":             {"Shop", "Default", "", "A,B", "A;B", "$A", strings.Repeat("p", 65)},
		"session-plain-paths":         {"/healthz", "/healthz,/readyz", "/health", "/healthz,/session/init", "/a/../b", "/.well-known/x", "/..x", "/a//b", "/a/", "", "a", "/a, /b", "/" + strings.Repeat("p", 2047), "/" + strings.Repeat("p", 2048)},
		"session-redis":               {"redis", "Redis", "a.b", "a..b", "", strings.Repeat("r", 253), strings.Repeat("r", 254)},
		"keys":                        {"keys", "keys, issuing.ca", "keys,keys", "keys,", "Keys", "", "a-", strings.Repeat("k", 253)},
		"image":                       {"registry.example/broker:1.2.3", "localhost/crypto-broker/broker:0.1.0", "example.com/mine:1", "", "registry.example/broker:1.2.3 "},
		"image-pull-secret":           {"registry", "other", "Registry", ""},
		"of-no-such-name":             {"x"},
		"profile":                     {"Default"},
		"injected":                    {"0.1.0/0123456789ab", ""},
		"profiles-digest":             {"sha256:00"},
		"profiles-snapshot":           {"[]"},
		"profiles-snapshot-signature": {"AA=="},
	}
	prefixed := map[string][]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": {"", " ", "a", "a,b", contract.SocketVolume, "a, crypto-broker-socket ,b", ",", "crypto-broker-socket-2"},
		"prometheus.io/scrape": {"true", "false"},
		"prometheus.io/other":  {"x"},
	}
	for name, list := range values {
		prefixed[contract.AnnotationPrefix+name] = list
	}
	return prefixed
}

// collisions are changes that collide with what injection adds or decides by.
var collisions = []func(*rand.Rand, *corev1.Pod){
	func(_ *rand.Rand, pod *corev1.Pod) {
		pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		noLinuxFields(pod)
	},
	func(r *rand.Rand, pod *corev1.Pod) {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: []string{"windows", "linux", "Windows"}[r.Intn(3)]}
	},
	requireNodes, requireNodes, requireNodes,
	func(_ *rand.Rand, pod *corev1.Pod) { pod.Annotations[corev1.MirrorPodAnnotationKey] = "x" },
	// Names of the broker.
	func(_ *rand.Rand, pod *corev1.Pod) { pod.Spec.Containers[0].Name = contract.BrokerContainer },
	func(_ *rand.Rand, pod *corev1.Pod) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: contract.BrokerContainer, Image: "example.com/mine:1"})
	},
	func(r *rand.Rand, pod *corev1.Pod) {
		name := []string{contract.SocketVolume, contract.ProfilesVolume, "crypto-broker-keys-1", "crypto-broker-keys-9", "crypto-broker-session-redis", "crypto-broker-key-gateway", "crypto-broker-mine"}[r.Intn(7)]
		pod.Spec.Volumes = append(pod.Spec.Volumes, fixture.Empty(name))
		if r.Intn(2) == 0 {
			pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, fixture.Mounts(name, "/mine")...)
		}
	},
	func(r *rand.Rand, pod *corev1.Pod) {
		name := []string{contract.SocketVolume, contract.ProfilesVolume, "crypto-broker-keys-1", "crypto-broker-session-redis"}[r.Intn(4)]
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, fixture.Mounts(name, "/theirs")...)
	},
	// Mounts beside the socket.
	mountNearSocket, mountNearSocket, mountNearSocket,
	// The variable with the path of the socket.
	func(r *rand.Rand, pod *corev1.Pod) {
		c := &pod.Spec.Containers[r.Intn(len(pod.Spec.Containers))]
		c.Env = append(c.Env, fixture.FromField(contract.SocketVariable, "metadata.name"))
	},
	func(_ *rand.Rand, pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, fixture.Env(contract.SocketVariable, "", contract.SocketVariable, "/b")...)
	},
	// Resources.
	guaranteed, guaranteed, resourcesOfPod, resourcesOfPod, resourcesOfPod,
	// Ports of the broker.
	func(r *rand.Rand, pod *corev1.Pod) {
		port := corev1.ContainerPort{ContainerPort: []int32{9470, 9471, 8443, 8080}[r.Intn(4)], Protocol: []corev1.Protocol{"", "TCP", "UDP", "SCTP"}[r.Intn(4)]}
		if len(pod.Spec.InitContainers) > 0 && r.Intn(2) == 0 {
			pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1].Ports = append(pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1].Ports, port)
			return
		}
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, port)
	},
	func(r *rand.Rand, pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{Name: []string{"broker-status", "broker-session"}[r.Intn(2)], ContainerPort: 7000})
	},
	func(_ *rand.Rand, pod *corev1.Pod) { pod.Spec.HostNetwork = true },
	func(_ *rand.Rand, pod *corev1.Pod) { pod.Spec.HostPID, pod.Spec.ShareProcessNamespace = true, nil },
	func(_ *rand.Rand, pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = ptr.To(false) },
	// Many containers.
	func(_ *rand.Rand, pod *corev1.Pod) {
		for i := range 12 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("more-%d", i), Image: "example.com/more:1"})
		}
	},
	func(_ *rand.Rand, pod *corev1.Pod) { pod.Annotations = nil },
	func(r *rand.Rand, pod *corev1.Pod) {
		if pod.Spec.SecurityContext == nil {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		pod.Spec.SecurityContext.RunAsUser = ptr.To(int64(r.Intn(2)))
	},
	func(_ *rand.Rand, pod *corev1.Pod) {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "example.com/debug:1"}}}
	},
}

// noLinuxFields removes what a pod for Windows can't have.
func noLinuxFields(pod *corev1.Pod) {
	pod.Spec.HostPID, pod.Spec.HostNetwork, pod.Spec.ShareProcessNamespace, pod.Spec.HostUsers, pod.Spec.SecurityContext = false, false, nil, nil, nil
	fixture.Each(pod, func(_ string, c *corev1.Container) { c.SecurityContext = nil })
}

// requireNodes makes the pod require nodes by their operating system.
func requireNodes(r *rand.Rand, pod *corev1.Pod) {
	requirement := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpExists},
			{Key: corev1.LabelOSStable, Operator: operator, Values: values},
		}}
	}
	windows, linux := requirement(corev1.NodeSelectorOpIn, "windows"), requirement(corev1.NodeSelectorOpIn, "linux")
	both, notLinux := requirement(corev1.NodeSelectorOpIn, "windows", "linux"), requirement(corev1.NodeSelectorOpNotIn, "linux")
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	node := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}}}
	terms := [][]corev1.NodeSelectorTerm{{windows}, {windows, windows}, {windows, linux}, {linux}, {both}, {notLinux}, {zone}, {windows, zone}, {node}, {windows, node}, {windows, {}}}
	affinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms[r.Intn(len(terms))]}}
	if r.Intn(6) == 0 {
		affinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: windows}}}
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
}

// mountNearSocket mounts a volume at, above or below the directory of the socket.
func mountNearSocket(r *rand.Rand, pod *corev1.Pod) {
	volume := fixture.Empty("near")
	if r.Intn(3) == 0 {
		volume.VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "near"}}
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(found corev1.Volume) bool { return found.Name == volume.Name }) {
		return
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	mount := corev1.VolumeMount{Name: volume.Name, ReadOnly: r.Intn(4) == 0,
		MountPath: []string{"/tmp", "/tmp/", "/tmp/open-crypto-broker", "/tmp/open-crypto-broker/", "/tmp/open-crypto-broker/x", "/tmp/other", "/run", "tmp", "/tmp/open-crypto"}[r.Intn(9)]}
	c := &pod.Spec.Containers[r.Intn(len(pod.Spec.Containers))]
	if r.Intn(4) == 0 {
		c.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		mount.MountPropagation = ptr.To([]corev1.MountPropagationMode{corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer}[r.Intn(2)])
	}
	c.VolumeMounts = append(c.VolumeMounts, mount)
}

// guaranteed gives each container equal requests and limits.
func guaranteed(_ *rand.Rand, pod *corev1.Pod) {
	pod.Spec.Resources = nil
	fixture.Each(pod, func(_ string, c *corev1.Container) { c.Resources = fixture.Sized("1", "1Gi", "1", "1Gi") })
}

// resourcesOfPod gives the pod resources as a whole, for one resource or two.
func resourcesOfPod(r *rand.Rand, pod *corev1.Pod) {
	of := func() (list corev1.ResourceList) {
		list = corev1.ResourceList{}
		if r.Intn(2) == 0 {
			list[corev1.ResourceCPU] = resource.MustParse("8")
		}
		if r.Intn(2) == 0 {
			list[corev1.ResourceMemory] = resource.MustParse("8Gi")
		}
		return list
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: of(), Limits: of()}
}
