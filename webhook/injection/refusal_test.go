// SPDX-License-Identifier: Apache-2.0

package injection

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

// injectedPodWith returns the injected form of fixture.PodWith(), with changes.
func injectedPodWith(t *testing.T, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod, _, err := Inject(fixture.PodWith(), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

const reserved = "the name is reserved for the broker that the operator adds: rename yours; or, in a copy of an injected pod, " +
	"keep the annotations (kubectl debug --keep-annotations)"

func TestARefusalTellsTheFirstTenProblemsAndHowManyThereAreMore(t *testing.T) {
	_, _, err := Inject(fixture.PodWith(fixture.MountsOf(12, corev1.VolumeMount{Name: contract.SocketVolume})), "shop", nil, testTemplate())
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
	_, _, err := Inject(fixture.PodWith(fixture.ContainersOf(12, nil), fixture.Annotated("profiles.other", "Default")), "shop", nil, testTemplate())
	const want = `these get a socket: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more; a container that`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("answered %v, expected %q in it", err, want)
	}
}

func TestAReadOnlyVolumeAboveAWritableOneWithTheSocketIsFine(t *testing.T) {
	pod := fixture.PodWith(
		fixture.Annotated("socket-path", "/data/run/crypto"),
		fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/data", ReadOnly: true}),
		fixture.Mounting(corev1.VolumeMount{Name: "run", MountPath: "/data/run/"}),
	)
	if _, _, err := Inject(pod, "shop", nil, testTemplate()); err != nil {
		t.Error(err)
	}
}

func TestInjectRefuses(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"an annotation with a capital letter": {
			pod:  fixture.PodWith(fixture.Asking("True")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "True", expected "true" to get a broker or "false" to get none`},
		},
		"an annotation that says yes": {
			pod:  fixture.PodWith(fixture.Asking("yes")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "yes", expected "true" to get a broker or "false" to get none`},
		},
		"an empty annotation": {
			pod:  fixture.PodWith(fixture.Asking("")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "", expected "true" to get a broker or "false" to get none`},
		},
		"an annotation with a space": {
			pod:  fixture.PodWith(fixture.Asking("true ")),
			want: []string{`metadata.annotations[cryptobroker.io/inject]: found "true ", expected "true" to get a broker or "false" to get none`},
		},
		"another container with the broker's name": {
			pod:  fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "crypto-broker" }),
			want: []string{`spec.containers[0].name: found "crypto-broker", expected another name; ` + reserved},
		},
		"an init container of its own with the broker's name": {
			pod: fixture.PodWith(func(pod *corev1.Pod) {
				pod.Spec.InitContainers = []corev1.Container{{Name: "crypto-broker", Image: "example.com/mine:1"}}
			}),
			want: []string{`spec.initContainers[0].name: found "crypto-broker" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of the socket volume": {
			pod:  fixture.PodWith(fixture.With(corev1.Volume{Name: "crypto-broker-socket"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-socket" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of the profiles volume": {
			pod:  fixture.PodWith(fixture.With(corev1.Volume{Name: "data"}, corev1.Volume{Name: "crypto-broker-profiles"})),
			want: []string{`spec.volumes[1].name: found "crypto-broker-profiles" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of a volume of keys": {
			pod:  fixture.PodWith(fixture.With(corev1.Volume{Name: "crypto-broker-keys-1"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-keys-1" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume with the name of the token for the key gateway": {
			pod:  fixture.PodWith(fixture.With(corev1.Volume{Name: "crypto-broker-key-gateway"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-key-gateway" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a mount of the token for the key gateway": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-key-gateway", MountPath: "/token"})),
			want: []string{`spec.containers[0].volumeMounts[0].name: found "crypto-broker-key-gateway" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a mount of a volume that the operator would add": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "crypto-broker-profiles", MountPath: "/profiles"})),
			want: []string{`spec.containers[0].volumeMounts[0].name: found "crypto-broker-profiles" without the annotation cryptobroker.io/injected; ` + reserved},
		},
		"a volume at the place of the socket": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/open-crypto-broker"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a volume at the place of the socket, written otherwise": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/../tmp/open-crypto-broker/"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/../tmp/open-crypto-broker/" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a volume at the place of the socket, whose path is not absolute": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "tmp/open-crypto-broker"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a volume below the place of the socket": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/open-crypto-broker/data"})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker/data" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a block device at the place of the socket": {
			pod: fixture.PodWith(func(pod *corev1.Pod) {
				pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/tmp/open-crypto-broker"}}
			}),
			want: []string{`spec.containers[0].volumeDevices[0].devicePath: found "/tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`},
		},
		"a read-only mount above the place of the socket": {
			pod:  fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp", ReadOnly: true})),
			want: []string{`spec.containers[0].volumeMounts[0]: found the read-only volume "data" at "/tmp" in container "app", where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example`},
		},
		"a mount above the place of the socket that goes back to the node": {
			pod: fixture.PodWith(fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)})),
			want: []string{`spec.containers[0].volumeMounts[0].mountPropagation: found Bidirectional for the volume "data" at "/tmp" in container "app", ` +
				`which takes the mount of the broker's socket to the node, where it keeps the pod from being removed; ` +
				`expected None or HostToContainer, or another directory for the socket in the annotation cryptobroker.io/socket-path`},
		},
		"a ConfigMap above the place of the socket": {
			pod: fixture.PodWith(
				fixture.Mounting(corev1.VolumeMount{Name: "files", MountPath: "/tmp/"}),
				fixture.With(corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}),
			),
			want: []string{`spec.containers[0].volumeMounts[0]: found the read-only volume "files" at "/tmp/" in container "app", where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example`},
		},
		"a volume above the place of the socket that says itself that it is read-only": {
			pod: fixture.PodWith(
				fixture.Mounting(corev1.VolumeMount{Name: "share", MountPath: "/tmp"}),
				fixture.With(corev1.Volume{Name: "share", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{ReadOnly: true}}}),
			),
			want: []string{`spec.containers[0].volumeMounts[0]: found the read-only volume "share" at "/tmp" in container "app", where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example`},
		},
		"secrets of a driver above the place of the socket": {
			pod: fixture.PodWith(
				fixture.Mounting(corev1.VolumeMount{Name: "vault", MountPath: "/tmp"}),
				fixture.With(corev1.Volume{Name: "vault", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{ReadOnly: ptr.To(true)}}}),
			),
			want: []string{`spec.containers[0].volumeMounts[0]: found the read-only volume "vault" at "/tmp" in container "app", where no directory for the broker's socket can be made; expected a writable volume there, an emptyDir for example`},
		},
		"no container": {
			pod:  fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.Containers, pod.Spec.HostNetwork = nil, true }),
			want: []string{`spec.containers: found none, expected at least one container, which calls the broker`},
		},
		"several things at once, with a sentence for each": {
			pod: fixture.PodWith(
				fixture.With(corev1.Volume{Name: "crypto-broker-socket"}),
				fixture.Mounting(corev1.VolumeMount{Name: "data", MountPath: "/tmp/open-crypto-broker"}),
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
