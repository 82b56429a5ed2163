// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// profilesConfigMap is the ConfigMap of a namespace that brokers read.
func profilesConfigMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap},
		Data:       map[string]string{"Profiles.yaml": "- Name: Default\n"},
	}
}

// plainPod returns a pod without a broker and without optional fields.
func plainPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
	}
}

// brokerPod returns a pod with everything that the webhook adds and that the policies check. It does not ask for injection, because
// no webhook answers here.
func brokerPod(namespace, name string) *corev1.Pod {
	pod := plainPod(namespace, name)
	pod.Annotations = map[string]string{
		contract.InjectedAnnotation:         "0.1.0/0123456789abcdef",
		contract.ProfilesSnapshotAnnotation: "- Name: Default\n",
	}
	always := corev1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = []corev1.Container{{
		Name: contract.BrokerContainer, Image: "example.com/broker:1", RestartPolicy: &always,
		VolumeMounts: []corev1.VolumeMount{
			{Name: contract.SocketVolume, MountPath: "/tmp/open-crypto-broker"},
			{Name: contract.ProfilesVolume, MountPath: "/etc/crypto-broker/profiles", ReadOnly: true},
		},
	}, {
		Name: "migrate", Image: "example.com/migrate:1",
	}}
	optional := true
	pod.Spec.Volumes = []corev1.Volume{
		{Name: contract.SocketVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: contract.ProfilesVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ProfilesConfigMap}, Optional: &optional,
		}}},
	}
	return pod
}

// ephemeral returns the ephemeral container that kubectl debug adds.
func ephemeral(name string, change func(*corev1.EphemeralContainer)) corev1.EphemeralContainer {
	container := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: "example.com/debug:1",
		ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}}
	if change != nil {
		change(&container)
	}
	return container
}

func mergePatch(document string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(document))
}

func strategicPatch(document string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(document))
}
