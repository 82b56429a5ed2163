// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// A copy of an injected pod is fine as it is, and refused with anything in its
// broker that the policy does not put there.
func policyRefusesACopyWithAnotherBroker(t *testing.T, admin client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, admin, namespace)
	injected := plainPod(namespace.Name, "pod")
	injected.Annotations = map[string]string{contract.InjectAnnotation: "true", contract.KeysAnnotation: "signing"}
	if err := admin.Create(t.Context(), injected, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	injected.ResourceVersion, injected.UID, injected.ManagedFields = "", "", nil
	injected.Spec.Volumes = append(injected.Spec.Volumes, corev1.Volume{Name: "mine", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})

	const (
		container = `found a container "crypto-broker" that is not the one that is added`
		covered   = `found mounts of the container "crypto-broker" that cover its own files`
		volume    = "found a volume of the broker that is not the one that is added to the pod"
		callers   = `found "app,web", expected the same names as in --callers of the container "crypto-broker", which are app;`
	)
	starting := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/broker", "--profiles-dir=/mine", "--socket-dir=/run/broker"}}}
	mounting := func(mount corev1.VolumeMount) func(*corev1.Pod, *corev1.Container) {
		return func(_ *corev1.Pod, broker *corev1.Container) {
			broker.VolumeMounts = append(broker.VolumeMounts, mount)
		}
	}
	for sentence, test := range map[string]struct {
		change func(pod *corev1.Pod, broker *corev1.Container)
		want   string
	}{
		"a copy as it is":             {func(*corev1.Pod, *corev1.Container) {}, ""},
		"a mount that covers nothing": {mounting(corev1.VolumeMount{Name: "mine", MountPath: "/var/run/secrets/mine"}), ""},
		"a startup probe that a mesh has redirected": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.StartupProbe.HTTPGet.Path = "/app-health/crypto-broker/startupz"
		}, ""},
		"a liveness probe that starts another broker": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.LivenessProbe = &corev1.Probe{ProbeHandler: starting}
		}, container},
		"a readiness probe that starts another broker": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.ReadinessProbe = &corev1.Probe{ProbeHandler: starting}
		}, container},
		"a startup probe that starts another broker": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.StartupProbe.ProbeHandler = starting
		}, container},
		"a startup probe that needs nothing but a port": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.StartupProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: broker.StartupProbe.HTTPGet.Port}}
		}, container},
		"another path for the last words": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.TerminationMessagePath = "/run/broker/app/crypto-broker-server.sock"
		}, container},
		"a port of the node": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.Ports[0].HostPort = broker.Ports[0].ContainerPort
		}, container},
		"a claim to a device": {func(pod *corev1.Pod, broker *corev1.Container) {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "mine", ResourceClaimName: ptr.To("mine")}}
			broker.Resources.Claims = []corev1.ResourceClaim{{Name: "mine"}}
		}, container},
		"another port": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.Ports = append(broker.Ports, corev1.ContainerPort{Name: "other", ContainerPort: 4000})
		}, container},
		"an input": {func(_ *corev1.Pod, broker *corev1.Container) { broker.Stdin = true }, container},
		"a device in the place of its program": {func(pod *corev1.Pod, broker *corev1.Container) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"},
			}})
			broker.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/broker"}}
		}, container},
		"rules for its end": {func(_ *corev1.Pod, broker *corev1.Container) {
			broker.RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action:    corev1.ContainerRestartRuleActionRestart,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{1}},
			}}
		}, container},
		"another program over its own":                    {mounting(corev1.VolumeMount{Name: "mine", MountPath: "/broker", SubPath: "broker"}), covered},
		"another program, by a path that is not absolute": {mounting(corev1.VolumeMount{Name: "mine", MountPath: "broker", SubPath: "broker"}), covered},
		"other profiles, by a path with two slashes":      {mounting(corev1.VolumeMount{Name: "mine", MountPath: "/etc//crypto-broker/profiles"}), covered},
		"other sockets, by a path with dots":              {mounting(corev1.VolumeMount{Name: "mine", MountPath: "/run/./broker"}), covered},
		"other sockets, by a path that goes up":           {mounting(corev1.VolumeMount{Name: "mine", MountPath: "/var/../run/broker"}), covered},
		"its sockets once more, over its program":         {mounting(corev1.VolumeMount{Name: contract.SocketVolume, MountPath: "/broker", SubPath: "app"}), covered},
		"its profiles once more, over its sockets":        {mounting(corev1.VolumeMount{Name: contract.ProfilesVolume, MountPath: "/run/broker/app"}), covered},
		"a key as its program": {func(_ *corev1.Pod, broker *corev1.Container) {
			for i := range broker.VolumeMounts {
				if mount := &broker.VolumeMounts[i]; strings.HasPrefix(mount.Name, contract.KeysVolumePrefix) {
					mount.MountPath, mount.SubPath = "/broker", "broker"
				}
			}
		}, covered},
		"its sockets without its own directory": {func(_ *corev1.Pod, broker *corev1.Container) {
			for i := range broker.VolumeMounts {
				if mount := &broker.VolumeMounts[i]; mount.Name == contract.SocketVolume {
					mount.SubPath = "app"
				}
			}
		}, covered},
		"the annotation that names what its broker serves": {func(pod *corev1.Pod, _ *corev1.Container) {
			pod.Annotations[contract.ContainersAnnotation] = "app"
		}, ""},
		"the annotation that names a container which its broker does not serve": {func(pod *corev1.Pod, _ *corev1.Container) {
			pod.Annotations[contract.ContainersAnnotation] = "app,web"
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "web", Image: "example.com/web:1"})
		}, callers},
		"a container that the broker does not serve, and no annotation": {func(pod *corev1.Pod, _ *corev1.Container) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "web", Image: "example.com/web:1"})
		}, ""},
		"profiles under other names": {func(pod *corev1.Pod, _ *corev1.Container) {
			for i := range pod.Spec.Volumes {
				if pod.Spec.Volumes[i].Name == contract.ProfilesVolume {
					pod.Spec.Volumes[i].Projected.Sources[1].ConfigMap = &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ProfilesConfigMap}, Optional: ptr.To(true),
						Items: []corev1.KeyToPath{{Key: "Other.yaml", Path: "Profiles.yaml"}},
					}
				}
			}
		}, volume},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := injected.DeepCopy()
			test.change(pod, &pod.Spec.InitContainers[0])
			err := admin.Create(t.Context(), pod, client.DryRunAll)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected a refusal that says %s", err, test.want)
			}
		})
	}
}
