// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// repeated is a string with many names in it.
func repeated(n int, format string) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, format, i)
	}
	return strings.TrimSuffix(list.String(), ",")
}

// containersOf gives a pod this many containers.
func containersOf(n int, change func(i int, c *corev1.Container)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = make([]corev1.Container, n)
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Name = fmt.Sprintf("c%d", i)
			if change != nil {
				change(i, &pod.Spec.Containers[i])
			}
		}
	}
}

// annotatedFor gives a pod this many annotations, each for another container.
func annotatedFor(n int, prefix, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range n {
			pod.Annotations[fmt.Sprintf("%s%d", prefix, i)] = value
		}
	}
}

// mountsOf gives the first container this many mounts.
func mountsOf(n int, mount corev1.VolumeMount) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for range n {
			pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, mount)
		}
	}
}

// stamped gives a pod the operator's stamp.
func stamped(pod *corev1.Pod) { pod.Annotations[contract.InjectedAnnotation] = "0.1.0/0123456789ab" }

// oversized are pods that a tenant may send to make the webhook work. What a list
// multiplies with another shows in all of them.
func oversized(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	broker := injectedPodWith(t).Spec.InitContainers[0]
	long := strings.Repeat("\U0001f511", 250_000)
	return map[string]*corev1.Pod{
		"2,000 containers and 4,000 annotations for others": podWith(containersOf(2000, nil), annotatedFor(4000, contract.ContainerProfilesPrefix+"x", "Default")),
		"4,000 annotations that do not exist":               podWith(annotatedFor(4000, contract.AnnotationPrefix+"profile", "Default")),
		"4,000 annotations with a value that can't be":      podWith(annotatedFor(4000, contract.ContainerProfilesPrefix+"x", "a;b")),
		"4,000 annotations with many profiles that are not listed": podWith(containersOf(4000, nil),
			annotated("profiles", repeated(100, "listed%d,")), annotatedFor(4000, contract.ContainerProfilesPrefix+"c", repeated(100, "p%d,"))),
		"4,000 lists of profiles that the namespace does not have": podWith(containersOf(4000, nil), annotatedFor(4000, contract.ContainerProfilesPrefix+"c", "Other,More")),
		"4,000 containers that may use a long list":                podWith(containersOf(4000, nil), annotated("profiles", repeated(100, "a-profile-with-a-rather-long-name-%d,"))),
		"60,000 mounts with a reserved name":                       podWith(mountsOf(60_000, corev1.VolumeMount{Name: contract.SocketVolume})),
		"60,000 mounts in the place of the socket":                 podWith(mountsOf(60_000, corev1.VolumeMount{Name: "data", MountPath: contract.SocketDir})),
		"20,000 mounts above the socket and as many volumes": podWith(mountsOf(20_000, corev1.VolumeMount{Name: "v19999", MountPath: "/tmp"}), func(pod *corev1.Pod) {
			for i := range 20_000 {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i)})
			}
		}),
		"20,000 containers with the broker's name": podWith(containersOf(20_000, func(_ int, c *corev1.Container) { c.Name = contract.BrokerContainer })),
		"20,000 volumes with a reserved name": podWith(func(pod *corev1.Pod) {
			for range 20_000 {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: contract.ProfilesVolume})
			}
		}),
		"a list of 500,000 containers":                                 podWith(annotated("containers", repeated(500_000, "c%d,"))),
		"a list of 500,000 profiles":                                   podWith(annotated("profiles", repeated(500_000, "p%d,"))),
		"the name of a container of 1 MB that the annotation lists":    podWith(annotated("containers", long)),
		"a container's name of 1 MB twice in the list":                 podWith(annotated("containers", long+","+long)),
		"the name of an annotation of 1 MB":                            podWith(func(pod *corev1.Pod) { pod.Annotations[contract.AnnotationPrefix+long] = "x" }),
		"the name of an annotation for a container of 1 MB":            podWith(func(pod *corev1.Pod) { pod.Annotations[contract.ContainerProfilesPrefix+long] = "x" }),
		"a value of 1 MB":                                              podWith(func(pod *corev1.Pod) { pod.Annotations[contract.InjectAnnotation] = long }),
		"a path of 1 MB":                                               podWith(annotated("socket-path", "/"+long)),
		"a path of 1 MB that is not clean":                             podWith(annotated("socket-path", "/./"+long)),
		"a mount at a path of 1 MB in a container with a name of 1 MB": podWith(mounting(corev1.VolumeMount{Name: long, MountPath: contract.SocketDir + "/" + long}), func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = long }),
		"a broker for 200,000 callers and 5,000 containers": podWith(stamped, containersOf(5000, func(_ int, c *corev1.Container) { c.Name = "c0" }), annotated("containers", "c0"), func(pod *corev1.Pod) {
			own := *broker.DeepCopy()
			own.Args[2] = contract.Argument(contract.CallersFlag, "") + repeated(200_000, "b%d,")
			pod.Spec.InitContainers = []corev1.Container{own}
		}),
		"a broker and 20,000 containers that mount its volume": podWith(stamped, func(pod *corev1.Pod) { pod.Spec.InitContainers = []corev1.Container{broker} },
			containersOf(20_000, func(_ int, c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: contract.SocketVolume}} })),
		"a broker and 10,000 containers with their sockets": podWith(stamped, func(pod *corev1.Pod) { pod.Spec.InitContainers = []corev1.Container{broker} },
			containersOf(10_000, func(_ int, c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: contract.SocketVolume, MountPath: contract.SocketDir, SubPath: c.Name, ReadOnly: true}}
			})),
		"60,000 mounts that the operator takes out again": podWith(stamped, mountsOf(60_000, corev1.VolumeMount{Name: contract.SocketVolume})),
		"20,000 volumes that the operator takes out again": podWith(stamped, func(pod *corev1.Pod) {
			for range 20_000 {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: contract.ProfilesVolume})
			}
		}),
		"a broker with 20,000 variables and mounts of others": podWith(stamped, func(pod *corev1.Pod) {
			own := *broker.DeepCopy()
			for range 20_000 {
				own.Env = append(own.Env, corev1.EnvVar{Name: "OTEL_SDK_DISABLED"})
				own.VolumeMounts = append(own.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: "/"})
			}
			pod.Spec.InitContainers = []corev1.Container{own}
		}),
		"10,000 containers with a port that the broker has": podWith(annotated("metrics-port", "9999"), containersOf(10_000, func(_ int, c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 9999}}
		})),
	}
}

// What a pod makes the webhook allocate is bounded by what it sends: by a multiple
// that a list in a list would exceed by far.
func TestAPodCostsInProportionToItsSize(t *testing.T) {
	for what, pod := range oversized(t) {
		t.Run(what, func(t *testing.T) {
			size := uint64(len(fixture.JSON(t, pod)))
			begin := time.Now()
			allocated, warnings, err := allocatedBy(func() (*corev1.Pod, []string, error) {
				return Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			})
			t.Logf("%d bytes sent, %d allocated", size, allocated)
			if most := 80*size + 1<<20; allocated > most {
				t.Errorf("%d bytes were allocated for %d bytes that were sent, expected at most %d", allocated, size, most)
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
			if err != nil {
				expectBounded(t, err.Error())
			}
			expectBounded(t, strings.Join(warnings, "\n"))
		})
	}
}

// expectBounded reports a text that is longer than an answer may be, or cut apart.
func expectBounded(t *testing.T, text string) {
	t.Helper()
	if len(text) > 4<<10 {
		t.Errorf("the text has %d bytes, expected at most %d", len(text), 4<<10)
	}
	if !utf8.ValidString(text) {
		t.Errorf("the text was cut inside of a character: %q", text)
	}
}

// allocatedBy returns how many bytes a call allocates in all.
func allocatedBy(call func() (*corev1.Pod, []string, error)) (bytes uint64, warnings []string, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, warnings, err = call()
	runtime.ReadMemStats(&after)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		panic(err)
	}
	return after.TotalAlloc - before.TotalAlloc, warnings, err
}
