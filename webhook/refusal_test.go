// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// podWith is a pod that asks for a broker, with changes.
func podWith(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "app", "shop"
	pod.Annotations = map[string]string{v1alpha1.InjectAnnotation: "true"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:1"}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// injectedPodWith is what Inject makes of podWith(), with changes.
func injectedPodWith(t *testing.T, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod, _, err := Inject(podWith(), "shop", []byte(profilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// withKeys is what Inject makes of a pod that has keys, with changes.
func withKeys(t *testing.T, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod, _, err := Inject(podWith(annotated("keys", "broker-keys")), "shop", []byte(profilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func asking(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[v1alpha1.InjectAnnotation] = value }
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
	"leave out the container crypto-broker, the volumes crypto-broker-socket, crypto-broker-profiles and crypto-broker-keys-*, and the mounts of them"

func TestARefusalTellsTheFirstTenProblemsAndHowManyThereAreMore(t *testing.T) {
	_, _, err := Inject(podWith(mountsOf(12, corev1.VolumeMount{Name: v1alpha1.SocketVolume})), "shop", nil, testTemplate())
	var refusal *Refusal
	if !errors.As(err, &refusal) || len(refusal.Problems) != 11 {
		t.Fatalf("answered %v, expected ten problems and a sentence about the others", err)
	}
	const tenth = `spec.containers[0].volumeMounts[9].name: found "crypto-broker-socket" without the broker's container; ` + reserved
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
			want: []string{
				`spec.initContainers[0].args: found a container "crypto-broker" for the callers (none), but the containers that mount the volume crypto-broker-socket are (none)`,
				`spec.volumes: found no volume "crypto-broker-socket" for the container "crypto-broker"`,
				`spec.volumes: found no volume "crypto-broker-profiles" for the container "crypto-broker"; ` + reserved,
			},
		},
		"a volume with the name of the socket volume": {
			pod:  podWith(with(corev1.Volume{Name: "crypto-broker-socket"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-socket" without the broker's container; ` + reserved},
		},
		"a volume with the name of the profiles volume": {
			pod:  podWith(with(corev1.Volume{Name: "data"}, corev1.Volume{Name: "crypto-broker-profiles"})),
			want: []string{`spec.volumes[1].name: found "crypto-broker-profiles" without the broker's container; ` + reserved},
		},
		"a volume with the name of a volume of keys": {
			pod:  podWith(with(corev1.Volume{Name: "crypto-broker-keys-1"})),
			want: []string{`spec.volumes[0].name: found "crypto-broker-keys-1" without the broker's container; ` + reserved},
		},
		"a volume of keys that no annotation asks for": {
			pod:  injectedPodWith(t, with(corev1.Volume{Name: "crypto-broker-keys-1"})),
			want: []string{`spec.volumes[2]: found a volume "crypto-broker-keys-1" that the operator does not make; ` + reserved},
		},
		"an app that mounts the broker's keys": {
			pod: withKeys(t, func(pod *corev1.Pod) {
				pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "crypto-broker-keys-1", MountPath: "/keys"})
			}),
			want: []string{`spec.containers[0].volumeMounts[1]: found a mount of "crypto-broker-keys-1" in container "app" that the operator does not make; ` + reserved},
		},
		"keys of another Secret than the annotation names": {
			pod:  withKeys(t, func(pod *corev1.Pod) { pod.Spec.Volumes[2].Projected.Sources[0].Secret.Name = "mine" }),
			want: []string{`spec.volumes[2]: found a volume "crypto-broker-keys-1" that differs from what the operator makes; ` + reserved},
		},
		"a broker with other keys mounted over its own": {
			pod: withKeys(t, inBroker(func(c *corev1.Container) {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: "/etc/crypto-broker/keys/mine"})
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose volumeMounts differs from what the operator makes; ` + reserved},
		},
		"an annotation that was changed in between": {
			pod:  injectedPodWith(t, annotated("profiles", "Default")),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose args differs from what the operator makes; ` + reserved},
		},
		"a broker for other containers than the annotation names": {
			pod:  injectedPodWith(t, second(corev1.Container{Name: "side"}), annotated("containers", "app,side")),
			want: []string{`spec.initContainers[0].args: found a container "crypto-broker" for the callers app, but the annotation cryptobroker.io/containers names app, side; ` + reserved},
		},
		"a mount of a volume that the operator would add": {
			pod:  podWith(mounting(corev1.VolumeMount{Name: "crypto-broker-profiles", MountPath: "/profiles"})),
			want: []string{`spec.containers[0].volumeMounts[0].name: found "crypto-broker-profiles" without the broker's container; ` + reserved},
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
				`spec.volumes[0].name: found "crypto-broker-socket" without the broker's container; ` + reserved,
				`spec.containers[0].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker" in container "app", where the broker's socket has to be; expected a path outside of /tmp/open-crypto-broker`,
			},
		},
		"a broker with another image": {
			pod:  injectedPodWith(t, inBroker(func(c *corev1.Container) { c.Image = "example.com/evil:1" })),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose image differs from what the operator makes; ` + reserved},
		},
		"a broker with another command, argument and user": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.Command = []string{"/bin/sh"}
				c.Args = append(c.Args, "--profiles-dir=/tmp")
				c.SecurityContext.RunAsUser = ptr.To[int64](1)
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose command, args, securityContext differs from what the operator makes; ` + reserved},
		},
		"a broker that is no sidecar": {
			pod:  injectedPodWith(t, inBroker(func(c *corev1.Container) { c.RestartPolicy = nil })),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose restartPolicy differs from what the operator makes; ` + reserved},
		},
		"a broker with other profiles mounted over its own": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: "/etc/crypto-broker/profiles/Profiles.yaml"})
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose volumeMounts differs from what the operator makes; ` + reserved},
		},
		"a broker with another program mounted over its own, by a path that is not absolute": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mine", MountPath: "broker", SubPath: "mine"})
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose volumeMounts differs from what the operator makes; ` + reserved},
		},
		"a broker with a claim to a device": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.Resources.Claims = []corev1.ResourceClaim{{Name: "mine"}}
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose resources differs from what the operator makes; ` + reserved},
		},
		"a broker with its configuration in the environment": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "CRYPTO_BROKER_SHUTDOWN_TIMEOUT", Value: "0s"}}
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose env differs from what the operator makes; ` + reserved},
		},
		"a broker whose cryptography is set by the environment": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "GODEBUG", Value: "rsa1024min=0"}}
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose env differs from what the operator makes; ` + reserved},
		},
		"a broker that exports its spans where the pod says": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://elsewhere:4317"}}
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose env differs from what the operator makes; ` + reserved},
		},
		"a broker whose environment comes from elsewhere": {
			pod: injectedPodWith(t, inBroker(func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}
			})),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose envFrom differs from what the operator makes; ` + reserved},
		},
		"a broker for a container that has no socket": {
			pod: injectedPodWith(t, func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts = nil }),
			want: []string{
				`spec.initContainers[0].args: found a container "crypto-broker" for the callers app, but the containers that mount the volume crypto-broker-socket are (none); ` + reserved,
			},
		},
		"a container with a socket that the broker does not know": {
			pod: injectedPodWith(t, func(pod *corev1.Pod) {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second", VolumeMounts: []corev1.VolumeMount{
					{Name: "crypto-broker-socket", MountPath: "/tmp/open-crypto-broker", SubPath: "second", ReadOnly: true},
				}})
			}),
			want: []string{`spec.initContainers[0].args: found a container "crypto-broker" for the callers app, but the containers that mount the volume crypto-broker-socket are app, second; ` + reserved},
		},
		"a container with the socket of another": {
			pod: injectedPodWith(t, func(pod *corev1.Pod) {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second", VolumeMounts: []corev1.VolumeMount{
					{Name: "crypto-broker-socket", MountPath: "/tmp/open-crypto-broker", SubPath: "app", ReadOnly: true},
				}})
			}),
			want: []string{`spec.containers[1].volumeMounts[0]: found a mount of "crypto-broker-socket" in container "second" that the operator does not make; ` + reserved},
		},
		"a container with all sockets": {
			pod:  injectedPodWith(t, mounting(corev1.VolumeMount{Name: "crypto-broker-socket", MountPath: "/sockets"})),
			want: []string{`spec.containers[0].volumeMounts[1]: found a mount of "crypto-broker-socket" in container "app" that the operator does not make; ` + reserved},
		},
		"a container with a writable socket": {
			pod: injectedPodWith(t, func(pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts[0].ReadOnly = false }),
			want: []string{
				`spec.containers[0].volumeMounts[0]: found a mount of "crypto-broker-socket" in container "app" that the operator does not make`,
				`spec.initContainers[0].args: found a container "crypto-broker" for the callers app, but the containers that mount the volume crypto-broker-socket are (none); ` + reserved,
			},
		},
		"an init container in front of the broker with a socket": {
			pod: injectedPodWith(t, func(pod *corev1.Pod) {
				early := corev1.Container{Name: "early", VolumeMounts: []corev1.VolumeMount{
					{Name: "crypto-broker-socket", MountPath: "/tmp/open-crypto-broker", SubPath: "early", ReadOnly: true},
				}}
				pod.Spec.InitContainers = append([]corev1.Container{early}, pod.Spec.InitContainers...)
			}),
			want: []string{`spec.initContainers[0].volumeMounts[0]: found the broker's socket in container "early", which ends before the broker starts; expected it behind the container "crypto-broker"`},
		},
		"a socket volume on the node's disk": {
			pod: injectedPodWith(t, func(pod *corev1.Pod) {
				pod.Spec.Volumes[0].EmptyDir = nil
				pod.Spec.Volumes[0].HostPath = &corev1.HostPathVolumeSource{Path: "/var"}
			}),
			want: []string{`spec.volumes[0]: found a volume "crypto-broker-socket" that differs from what the operator makes; ` + reserved},
		},
		"profiles from another ConfigMap": {
			pod:  injectedPodWith(t, func(pod *corev1.Pod) { pod.Spec.Volumes[1].Projected.Sources[1].ConfigMap.Name = "mine" }),
			want: []string{`spec.volumes[1]: found a volume "crypto-broker-profiles" that differs from what the operator makes; ` + reserved},
		},
		"a broker with a status port on the host's network": {
			pod:  injectedPodWith(t, func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose args, ports differs from what the operator makes; ` + reserved},
		},
		"a startup probe that gives up early": {
			pod:  injectedPodWith(t, inBroker(func(c *corev1.Container) { c.StartupProbe.FailureThreshold = 1 })),
			want: []string{`spec.initContainers[0]: found a container "crypto-broker" whose startupProbe differs from what the operator makes; ` + reserved},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod, _, err := Inject(test.pod, "shop", []byte(profilesOfShop), testTemplate())
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
