// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// inUse warns of the deletion of a profile that brokers serve. It reads the numbers in
// the status, because the time to count pods would grow with their number. where is the
// namespace of a CryptoProfile, empty for a ClusterCryptoProfile.
func inUse(where string, status *v1alpha1.ProfileStatus) []string {
	pods := status.UpdatedPods + status.UnverifiedPods // of the namespaces that accept it
	if accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted); accepted != nil && slices.Contains(servedReasons, accepted.Reason) {
		pods = status.Pods
	}
	if pods == 0 {
		return nil
	}
	who := "1 running pod has a broker that serves"
	if pods > 1 {
		who = fmt.Sprintf("%d running pods have brokers that serve", pods)
	}
	if where != "" {
		where = fmt.Sprintf(" in namespace %q", where)
	}
	return []string{fmt.Sprintf("%s the profile %q%s: calls with it fail once it is deleted, unless another object defines a profile of this name", who, status.ProfileName, where)}
}

// servedReasons are reasons of the condition Accepted. With each of them, all pods that
// the status counts are served a profile of this name, current or former.
var servedReasons = []string{v1alpha1.ReasonValid, v1alpha1.ReasonDowngradeWithheld, v1alpha1.ReasonNotWritten}
