// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// waitGrace is how long a broker may run without a set before its owner gets an event. Profiles
// are often created with the workload, or soon after.
const waitGrace = 15 * time.Second

// runsUnstarted returns the time since which the broker of a pod runs without being started. A
// broker is started once it has a set of profiles.
func runsUnstarted(pod *corev1.Pod) (since time.Time, is bool) {
	status := injected.BrokerStatus(pod)
	if status == nil || status.State.Running == nil {
		return time.Time{}, false
	}
	return status.State.Running.StartedAt.Time, status.Started == nil || !*status.Started
}

// hasSet reports whether a namespace has a set of profiles that a broker starts with. It does not
// start with an empty set, which stays while brokers run after the last profile is deleted.
func (r *reconciler) hasSet(ctx context.Context, namespace string) (bool, error) {
	var set corev1.ConfigMap
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, &set)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	file, is := set.Data[profile.FileName]
	return is && !profile.Empty([]byte(file)), err
}
