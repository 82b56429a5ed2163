// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Refusal says why a pod is not admitted. Every problem is one sentence that
// begins with the place in the pod. They are at most ten, of 4 KiB together; of more,
// a last sentence says how many.
type Refusal struct {
	Problems []string
}

// Error joins the problems.
func (r *Refusal) Error() string { return strings.Join(r.Problems, "; ") }

// verdict says whether a pod gets a broker.
type verdict struct {
	inject bool
	// reason is why not, for the audit log.
	reason string
	// warning is told to whoever creates the pod, if it asked and gets none.
	warning string
}

// decide reads what the pod asks for. byDefault is what its namespace says for
// pods that ask for nothing.
func decide(pod *corev1.Pod, byDefault bool) (verdict, error) {
	value, asked := pod.Annotations[contract.InjectAnnotation]
	switch {
	case asked && value != "true" && value != "false":
		var found problems
		found.add(`metadata.annotations[%s]: found %s, expected "true" to get a broker or "false" to get none`, contract.InjectAnnotation, quoted(value))
		return verdict{}, found.refusal()
	case value == "false":
		return verdict{reason: "declined"}, nil
	case !asked && !byDefault:
		return verdict{reason: "not asked"}, nil
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return verdict{
			reason:  "mirror pod",
			warning: "a static pod gets no broker: the kubelet started it without asking the API server",
		}, nil
	}
	if isWindows(pod) {
		return verdict{
			reason:  "Windows pod",
			warning: "a Windows pod gets no broker: the broker runs on Linux only",
		}, nil
	}
	return verdict{inject: true}, nil
}

func isWindows(pod *corev1.Pod) bool {
	return pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows ||
		pod.Spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
}
