// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// Probe is a pod that asks only for a broker, and that each Pod Security Standard admits.
func Probe(namespace string) *corev1.Pod {
	deny, must := false, true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "crypto-broker-dry-run-",
			Namespace:    namespace,
			Annotations:  map[string]string{contract.InjectAnnotation: "true"},
		},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   &must,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "app", Image: "dry-run",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &deny,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// NewPod returns a pod with the broker that a pod would get now. It creates a pod as a dry run:
// the API server sends it through admission and stores nothing. The user needs the right to
// create pods.
func NewPod(ctx context.Context, client kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	pod, err := client.CoreV1().Pods(namespace).Create(ctx, Probe(namespace), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierror.LacksRight(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("a pod that was created as a dry run in namespace %q was not admitted: %w", namespace, err)
	}
	if injected.Broker(pod) == nil {
		return nil, ErrNotInjected
	}
	return pod, nil
}

// ErrNotInjected says that a pod that asks for a broker gets none.
var ErrNotInjected = errors.New("a pod that asks for a broker, created as a dry run, got none: the operator is not installed, or is not called for this namespace")

// isOutdated reports whether a pod's broker differs from the broker of a new pod.
func isOutdated(pod, now *corev1.Pod) bool {
	_, asked := pod.Annotations[contract.ImageAnnotation]
	if !asked && injected.Broker(pod).Image != injected.Broker(now).Image {
		return true
	}
	stamp, stamped := pod.Annotations[contract.InjectedAnnotation]
	return stamped && !injection.SameTemplate(stamp, now.Annotations[contract.InjectedAnnotation])
}
