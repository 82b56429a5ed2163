// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Patch applies the difference between two pods to the manifest.
func (p *PodTemplate) Patch(without, with *corev1.Pod) error {
	before, err := p.essence(without)
	if err != nil {
		return err
	}
	after, err := p.essence(with)
	if err != nil {
		return err
	}
	difference, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return fmt.Errorf("compare the pods with and without a broker: %w", err)
	}
	written, err := json.Marshal(p.fields)
	if err != nil {
		return err
	}
	patched, err := strategicpatch.StrategicMergePatch(written, difference, corev1.Pod{})
	if err != nil {
		return fmt.Errorf("write the broker into the manifest: %w", err)
	}
	clear(p.fields)
	return json.Unmarshal(patched, &p.fields)
}

// OfClaim reports whether a StatefulSet makes a volume from its claim templates.
func (p *PodTemplate) OfClaim(volume corev1.Volume) bool {
	return slices.Contains(p.Claims, volume.Name)
}

// TokenVolume begins the name of the volume with the pod's token. The rest of the
// name is random.
const TokenVolume = "kube-api-access-"

// essence returns a pod as JSON, without the fields that differ between any two pods.
func (p *PodTemplate) essence(pod *corev1.Pod) ([]byte, error) {
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: map[string]string{}}, Spec: *pod.Spec.DeepCopy()}
	maps.Copy(bare.Annotations, pod.Annotations)
	delete(bare.Annotations, contract.InjectAnnotation) // the pods differ in this annotation, and it is already written
	own := func(volume string) bool {
		return strings.HasPrefix(volume, TokenVolume) &&
			!slices.ContainsFunc(p.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	}
	spec := &bare.Spec
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return own(v.Name) || p.OfClaim(v) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return own(m.Name) })
		}
	}
	return json.Marshal(bare)
}
