// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// podWith is a pod that asks for a broker, with changes.
func podWith(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "app", "shop"
	pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:1"}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// injectedPodWith is what Inject makes of podWith(), with changes.
func injectedPodWith(t *testing.T, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod, _, err := Inject(podWith(), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func asking(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[contract.InjectAnnotation] = value }
}

func mounting(mounts ...corev1.VolumeMount) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, mounts...)
	}
}

func with(volumes ...corev1.Volume) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Volumes = append(pod.Spec.Volumes, volumes...) }
}

func inBroker(change func(*corev1.Container)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { change(&pod.Spec.InitContainers[0]) }
}

const reserved = "the name is reserved for the broker that the operator adds: rename yours; or, in a copy of an injected pod, " +
	"keep the annotations (kubectl debug --keep-annotations)"

func TestARefusalTellsTheFirstTenProblemsAndHowManyThereAreMore(t *testing.T) {
	_, _, err := Inject(podWith(mountsOf(12, corev1.VolumeMount{Name: contract.SocketVolume})), "shop", nil, testTemplate())
	var refusal *Refusal
	if !errors.As(err, &refusal) || len(refusal.Problems) != 11 {
		t.Fatalf("answered %v, expected ten problems and a sentence about the others", err)
	}
	const tenth = `spec.containers[0].volumeMounts[9].name: found "crypto-broker-socket" without the annotation cryptobroker.io/injected; ` + reserved
	if diff := cmp.Diff([]string{tenth, "and 2 more problems like these"}, refusal.Problems[9:]); diff != "" {
		t.Errorf("other last sentences than expected (-want +found):\n%s", diff)
	}
}

func TestARefusalNamesTheFirstTenContainers(t *testing.T) {
	_, _, err := Inject(podWith(containersOf(12, nil), annotated("profiles.other", "Default")), "shop", nil, testTemplate())
	const want = `its containers are c0, c1, c10, c11, c2, c3, c4, c5, c6, c7 and 2 more; one that`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("answered %v, expected %q in it", err, want)
	}
}

func TestInjectRefuses(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"an annotation with a capital letter": {
			pod:  podWith(asking("True")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "True", expected "true" to get a broker or "false" to get none`},
		},
		"an annotation that says yes": {
			pod:  podWith(asking("yes")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "yes", expected "true" to get a broker or "false" to get none`},
		},
		"an empty annotation": {
			pod:  podWith(asking("")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "", expected "true" to get a broker or "false" to get none`},
		},
		"an annotation with a space": {
			pod:  podWith(asking("true ")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "true ", expected "true" to get a broker or "false" to get none`},
		},
		"another container with the broker's name": {
			pod:  podWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "crypto-broker" }),
			want: []string{`spec.containers[0].name: found "crypto-broker", expected another name; ` + reserved},
		},
		"an init container of its own with the broker's name": {
			pod: podWith(func(pod *corev1.Pod) {
				pod.Spec.InitContainers = []corev1.Container{{Name: "crypto-broker", Image: "example.com/mine:1"}}
			}),
			want: []string{`spec.initContainers[0].name: found "crypto-broker" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of the socket volume": {
			pod:  podWith(with(corev1.Volume{Name: "crypto-broker-socket"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-socket" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of the profiles volume": {
			pod:  podWith(with(corev1.Volume{Name: "data"}, corev1.Volume{Name: "crypto-broker-profiles"})),
			want: []string{`spec.volumes[1].name: found "crypto-broker-profiles" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of a volume of keys": {
			pod:  podWith(with(corev1.Volume{Name: "crypto-broker-keys-1"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-keys-1" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a mount of a volume that the operator would add": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "crypto-broker-profiles", MountPath: "/profiles"})),
			want: []string{`spec.containers[0].volumeMounts[0].name: found "crypto-broker-profiles" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume at the place of the socket": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/open-crypto-broker"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a volume at the place of the socket, written otherwise": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/../tmp/open-crypto-broker/"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/../tmp/open-crypto-broker/" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a volume at the place of the socket, whose path is not absolute": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "data", MountPath: "tmp/open-crypto-broker"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a volume below the place of the socket": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/open-crypto-broker/data"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker/data" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a block device at the place of the socket": {
			pod: podWith(func(pod *corev1.Pod) {
				pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/tmp/open-crypto-broker"}}
			}),
			want: []string{`spec.containers[0].volumeDevices[0].devicePath: found "/tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a read-only mount above the place of the socket": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp", ReadOnly: true})),
			want: []string{`spec.containers[0].volumeMounts[0]: found the read-only volume "data" at "/tmp" in container "app", where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example`},
		},
		"a mount above the place of the socket that goes back to the node": {
			pod: podWith(mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPropagation: found Bidirectional for the volume "data" at "/tmp" in container "app", ` +
				`which takes the mount of the broker's socket to the node, where it keeps the pod from being removed; ` +
				`expected None or HostToContainer, or another directory for the socket in the annotation cryptobroker.io/socket-path`},
		},
		"a ConfigMap above the place of the socket": {
			pod: podWith(
				mounting(corev1.VolumeMount{Name: "files", MountPath: "/tmp/"}),
				with(corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}),
			),
			want: []string{`spec.containers[0].volumeMounts[0]: found the read-only volume "files" at "/tmp/" in container "app", where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example`},
		},
		"several things at once, with a sentence for each": {
			pod: podWith(
				with(corev1.Volume{Name: "crypto-broker-socket"}),
				mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/open-crypto-broker"}),
			),
			want: []string{
				`spec.volumes[0].name: found "crypto-broker-socket" without the annotation cryptobroker.io/injected; ` + reserved,
				`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod, _, err := Inject(test.pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("found the pod %v and the error %v, expected a refusal", pod, err)
			}
			if diff := cmp.Diff(test.want, refusal.Problems); diff != "" {
				t.Errorf("other sentences than expected (-want +found):\n%s", diff)
			}
		})
	}
}
