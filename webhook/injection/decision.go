// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
)

// Refusal is the error about a pod that must not be admitted. Every problem is one sentence that
// begins with the place in the pod. It has at most ten problems of together 4 KiB, and a last
// sentence with the number of further problems.
type Refusal struct {
	Problems []string
	// Reason is the reason of the first problem.
	Reason Reason
}

// Reason is the kind of a problem of a pod.
type Reason string

// The reasons.
const (
	// ReasonAnnotation is for an unknown annotation of this project, or for an annotation with an
	// invalid value.
	ReasonAnnotation Reason = "annotation"
	// ReasonReserved is for a container, a volume or a mount with a reserved name.
	ReasonReserved Reason = "reserved"
	// ReasonPod is for any other problem of the pod, such as a mount at the path of the socket.
	ReasonPod Reason = "pod"
)

// Reasons are all reasons.
var Reasons = []Reason{ReasonAnnotation, ReasonReserved, ReasonPod}

// Error joins the problems.
func (r *Refusal) Error() string { return strings.Join(r.Problems, "; ") }

// Decision is the result of [Decide].
type Decision struct {
	// Inject reports whether the pod gets a broker.
	Inject bool
	// Reason says in a few words why the pod gets no broker: "declined", "not asked", "mirror
	// pod" or "Windows pod".
	Reason string
	// Warning is for the creator of a pod that asks for a broker and gets none.
	Warning string
}

// injectValues are the values of the annotation that asks for a broker.
var injectValues = annotation.Values{
	Expected: `"true" to get a broker or "false" to get none`,
	Fits:     annotation.OneOf("true", "false").Fits,
	CEL:      annotation.OneOf("true", "false").CEL,
}

// Decide returns whether a pod gets a broker. byDefault is the decision of its namespace for pods
// without the annotation. The error is a *Refusal, and the pod must not be admitted then.
func Decide(pod *corev1.Pod, byDefault bool) (Decision, error) {
	value, asked := pod.Annotations[contract.InjectAnnotation]
	switch {
	case asked && !injectValues.Fits(value):
		var found problems
		found.unexpected(contract.InjectAnnotation, value, "%s", injectValues.Expected)
		return Decision{}, found.refusal()
	case value == "false":
		return Decision{Reason: "declined"}, nil
	case !asked && !byDefault:
		return Decision{Reason: "not asked"}, nil
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return Decision{
			Reason:  "mirror pod",
			Warning: "a static pod gets no broker: the kubelet started it without asking the API server",
		}, nil
	}
	if injected.IsForWindows(pod) {
		return Decision{
			Reason:  "Windows pod",
			Warning: "a Windows pod gets no broker: the broker runs on Linux only",
		}, nil
	}
	return Decision{Inject: true}, nil
}
