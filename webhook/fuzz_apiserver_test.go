// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// randomPods is how many pods are tried, each with and without a broker.
const randomPods = 400

// If the API server accepts a pod without a broker, it also accepts it with a broker. With all defaults, nothing else of the pod
// differs.
func TestWhatTheAPIServerAcceptsWithoutABrokerItAcceptsWithOne(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t, nil, nil)
	if err := admin.Create(t.Context(), fixture.ProfilesIn(namespace)); err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for seed := range int64(randomPods) {
		pod := plausiblePod(rand.New(rand.NewSource(seed)))
		fixture.Asking("false")(pod)
		without, err := tryPod(t, namespace, pod)
		if err != nil {
			refused++
			continue
		}
		fixture.Asking("true")(pod)
		with, err := tryPod(t, namespace, pod)
		if err != nil {
			t.Errorf("seed %d: accepted without a broker, and with one: %v\n%s", seed, err, fixture.JSON(t, pod))
			continue
		}
		accepted++
		fixture.Asking("false")(with)
		with.ObjectMeta = without.ObjectMeta // other tests compare the metadata of golden pods
		if diff := cmp.Diff(without.Spec, withoutBrokerOf(t, with, pod).Spec); diff != "" {
			t.Errorf("seed %d: more than the broker's own is different (-without +with):\n%s", seed, diff)
		}
	}
	t.Logf("%d pods were accepted, %d are none that the API server accepts", accepted, refused)
	if accepted < randomPods*2/3 {
		t.Errorf("of %d pods only %d are such as the API server accepts: the test says little", randomPods, accepted)
	}
}

// withoutBrokerOf removes the broker from an accepted pod. The API server sets an empty security context if the pod has none.
func withoutBrokerOf(t *testing.T, with, sent *corev1.Pod) *corev1.Pod {
	t.Helper()
	rest := fixture.WithoutInjection(with, with)
	rest.Spec.SecurityContext = with.Spec.SecurityContext.DeepCopy()
	groups := rest.Spec.SecurityContext.SupplementalGroups
	if had := sent.Spec.SecurityContext; had == nil || len(had.SupplementalGroups) < len(groups) {
		groups = groups[:len(groups)-1]
	}
	rest.Spec.SecurityContext.SupplementalGroups = groups
	rest.Spec.ImagePullSecrets = rest.Spec.ImagePullSecrets[:len(sent.Spec.ImagePullSecrets)]
	// The API server treats nil and empty values alike.
	data := fixture.JSON(t, rest)
	clean := &corev1.Pod{}
	if err := json.Unmarshal(data, clean); err != nil {
		t.Fatal(err)
	}
	return clean
}

// plausiblePod returns a random pod that the API server and the webhook accept mostly.
func plausiblePod(r *rand.Rand) *corev1.Pod {
	pod := freePod(r)
	fixture.Choose(r, pod)
	if pod.Annotations[contract.SocketPathAnnotation] != "" {
		pod.Annotations[contract.SocketPathAnnotation] = "/crypto/socket" // where no volume is
	}
	// Other tests cover the fields for which the webhook refuses a pod.
	for name := range pod.Annotations {
		if _, _, err := injection.Inject(pod, "shop", nil, testTemplate()); err != nil && name != contract.InjectAnnotation {
			delete(pod.Annotations, name)
		}
	}
	return pod
}

// freePod returns a pod with a random part of the fields that its owner can set, which asks for a broker. The API server accepts
// most such pods.
func freePod(r *rand.Rand) *corev1.Pod {
	maybe := func(one int) bool { return r.Intn(one) == 0 }
	pod := fixture.PodWith()
	spec := &pod.Spec
	spec.Containers = nil
	volumes := plausibleVolumes(r)
	spec.Volumes = volumes
	for i := range 1 + r.Intn(3) {
		spec.Containers = append(spec.Containers, plausibleContainer(r, fmt.Sprintf("app-%d", i), volumes))
	}
	for i := range r.Intn(3) {
		c := plausibleContainer(r, fmt.Sprintf("init-%d", i), volumes)
		c.LivenessProbe, c.Lifecycle = nil, nil
		if maybe(3) {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		} else {
			c.ReadinessProbe, c.StartupProbe = nil, nil
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	spec.RestartPolicy = []corev1.RestartPolicy{"", corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[r.Intn(4)]
	switch r.Intn(6) {
	case 0:
		spec.ShareProcessNamespace = ptr.To(true)
	case 1:
		spec.HostUsers = ptr.To(false)
	case 2:
		spec.HostPID = true
	case 3:
		spec.HostNetwork = true
	}
	if maybe(2) {
		spec.SecurityContext = plausibleSecurity(r)
	}
	if maybe(6) {
		spec.OS = &corev1.PodOS{Name: corev1.Linux}
	}
	if maybe(8) {
		spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourceCPU: resource.MustParse("8")}}
	}
	if maybe(4) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	}
	if maybe(4) {
		spec.TerminationGracePeriodSeconds = ptr.To(int64(r.Intn(300)))
	}
	if maybe(4) {
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if maybe(4) {
		spec.Hostname, spec.Subdomain = "app-0", "app"
	}
	if maybe(5) {
		spec.AutomountServiceAccountToken = ptr.To(false)
	}
	return pod
}

func plausibleVolumes(r *rand.Rand) (volumes []corev1.Volume) {
	kinds := []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("1Mi"))}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "files"}}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}},
		{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim", ReadOnly: r.Intn(2) == 0}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
		{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}}},
	}
	for i := range r.Intn(4) {
		volumes = append(volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", i), VolumeSource: kinds[r.Intn(len(kinds))]})
	}
	return volumes
}

func plausibleContainer(r *rand.Rand, name string, volumes []corev1.Volume) corev1.Container {
	maybe := func(one int) bool { return r.Intn(one) == 0 }
	c := corev1.Container{Name: name, Image: "example.com/app:1"}
	places := []string{"/data", "/run", "/tmp/app", "/var/lib/app", "/etc/app", "/srv", "/cache", "/opt/app/files"}
	for i, place := range r.Perm(len(places))[:min(len(volumes), r.Intn(3))] {
		mount := corev1.VolumeMount{Name: volumes[i].Name, MountPath: places[place], ReadOnly: maybe(3)}
		if maybe(4) {
			mount.SubPath = "sub/path"
		}
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	if maybe(2) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "$(B)"}, fixture.FromField("NODE", "spec.nodeName"))
	}
	if maybe(8) {
		c.Env = append(c.Env, corev1.EnvVar{Name: contract.SocketVariable, Value: "/elsewhere"})
	}
	if maybe(4) {
		c.EnvFrom = []corev1.EnvFromSource{{Prefix: "CRYPTO_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
	}
	if maybe(2) {
		c.Ports = []corev1.ContainerPort{{Name: strings.ReplaceAll("p-"+name, "-", ""), ContainerPort: int32(9465 + r.Intn(10)), Protocol: []corev1.Protocol{"TCP", "UDP"}[r.Intn(2)]}}
	}
	if maybe(3) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
	}
	if maybe(3) {
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt(8080)}}}
	}
	if maybe(3) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, TimeoutSeconds: 3}
	}
	if maybe(6) {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	}
	if maybe(2) {
		c.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(maybe(2)), RunAsUser: ptr.To(int64(r.Intn(3) * 5000))}
	}
	c.TTY, c.Stdin = maybe(8), maybe(8)
	c.TerminationMessagePolicy = []corev1.TerminationMessagePolicy{"", corev1.TerminationMessageFallbackToLogsOnError}[r.Intn(2)]
	return c
}

func plausibleSecurity(r *rand.Rand) *corev1.PodSecurityContext {
	maybe := func(one int) bool { return r.Intn(one) == 0 }
	s := &corev1.PodSecurityContext{}
	if maybe(2) {
		s.RunAsUser, s.RunAsGroup = ptr.To(int64(r.Intn(3)*5000)), ptr.To(int64(r.Intn(70000)))
	}
	if maybe(2) {
		s.SupplementalGroups = [][]int64{{4000}, {4000, 60471}, {60471}}[r.Intn(3)]
	}
	if maybe(3) {
		s.SupplementalGroupsPolicy = ptr.To([]corev1.SupplementalGroupsPolicy{corev1.SupplementalGroupsPolicyStrict, corev1.SupplementalGroupsPolicyMerge}[r.Intn(2)])
	}
	if maybe(3) {
		s.FSGroup = ptr.To(int64(2000))
	}
	if maybe(3) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}
	return s
}
