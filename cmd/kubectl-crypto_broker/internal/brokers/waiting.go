// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
)

// errNoSet is the error if the ConfigMap of a namespace has no set of profiles.
var errNoSet = errors.New("there is no set of profiles in it")

// Waiting returns what a broker that has not started waits for, as far as the cluster shows it: a
// node, its image, the end of a back-off, or a first profile. Other reasons, such as a missing
// Secret, are in the pod's events.
func Waiting(ctx context.Context, pod *corev1.Pod, sets *Sets) string {
	if pod.Spec.NodeName == "" {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Message != "" {
				return "the pod has no node yet: " + apierror.OneLine(condition.Message)
			}
		}
		return "the pod has no node yet"
	}
	status := injected.BrokerStatus(pod)
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "PodInitializing" && status.State.Waiting.Reason != "ContainerCreating" {
		text := "its container waits with " + status.State.Waiting.Reason
		if last := status.LastTerminationState.Terminated; last != nil {
			return fmt.Sprintf("%s, after it ended with %s and exit code %d: see kubectl logs %s -n %s -c %s --previous",
				text, last.Reason, last.ExitCode, pod.Name, pod.Namespace, contract.BrokerContainer)
		}
		if message := apierror.OneLine(status.State.Waiting.Message); message != "" {
			text += ": " + message
		}
		return text
	}
	if sets.None(ctx, pod.Namespace) {
		return fmt.Sprintf("namespace %s has no profile that is accepted, and the broker waits for the first: see kubectl get cprof,ccprof -n %s", pod.Namespace, pod.Namespace)
	}
	return fmt.Sprintf("the broker has read no set yet; where that lasts, see kubectl describe pod %s -n %s", pod.Name, pod.Namespace)
}
