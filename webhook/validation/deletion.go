// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// inUse warns of the deletion of a profile that brokers serve. It reads the numbers in the
// status, because the time to count pods would grow with their number. where is the namespace of
// a CryptoProfile, or empty for a ClusterCryptoProfile.
func inUse(where string, status *v1alpha1.ProfileStatus) []string {
	pods := podsServed(status)
	if pods == 0 {
		return nil
	}
	if where != "" {
		where = fmt.Sprintf(" in namespace %q", where)
	}
	return []string{fmt.Sprintf("%s the profile %q%s: calls with it fail once it is deleted, unless another object defines a profile of this name", serving(pods), status.ProfileName, where)}
}

// serving is the beginning of a sentence about pods with brokers.
func serving(pods int32) string {
	if pods == 1 {
		return "1 running pod has a broker that serves"
	}
	return fmt.Sprintf("%d running pods have brokers that serve", pods)
}

// podsServed returns how many running pods have a broker that serves the profile or its
// former version.
func podsServed(status *v1alpha1.ProfileStatus) int32 {
	if accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted); accepted != nil && slices.Contains(servedReasons, accepted.Reason) {
		return status.Pods
	}
	return status.UpdatedPods + status.UnverifiedPods // of the namespaces that accept it
}

// servedReasons are reasons of the condition Accepted. With each of them, all pods in the status
// are served a current or former profile of this name.
var servedReasons = []string{v1alpha1.ReasonValid, v1alpha1.ReasonDowngradeWithheld, v1alpha1.ReasonNotWritten}
