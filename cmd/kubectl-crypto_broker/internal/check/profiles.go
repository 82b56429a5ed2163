// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// profiles checks that no profile is degraded. If the operator was installed anew, with a new signing key, only this check shows that
// all brokers refuse their sets.
func (c *Checker) profiles(ctx context.Context) (State, string) {
	const what = "whether a profile is degraded"
	namespaced, err := effective.NamespacedProfiles(ctx, c.Client, "")
	if err != nil {
		return cannotTell(what, err)
	}
	cluster, err := effective.ClusterProfiles(ctx, c.Client)
	if err != nil {
		return cannotTell(what, err)
	}
	var degraded []string
	refused := false
	look := func(name string, conditions []metav1.Condition) {
		if found := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded); found != nil && found.Status == metav1.ConditionTrue {
			degraded = append(degraded, fmt.Sprintf("%s (%s)", name, found.Reason))
			refused = refused || found.Reason == v1alpha1.ReasonSetRefused
		}
	}
	for i := range namespaced {
		look("cprof/"+namespaced[i].Name+" in namespace "+namespaced[i].Namespace, namespaced[i].Status.Conditions)
	}
	for i := range cluster {
		look("ccprof/"+cluster[i].Name, cluster[i].Status.Conditions)
	}
	all := len(namespaced) + len(cluster)
	if len(degraded) == 0 {
		return OK, fmt.Sprintf("none of %d profiles is degraded", all)
	}
	advice := "kubectl describe says why"
	if refused {
		advice += fmt.Sprintf("; %s restart --refused -A restarts workloads whose brokers refuse the signature of their set", text.Plugin)
	}
	return Warning, fmt.Sprintf("%d of %d profiles are degraded, %s: %s", len(degraded), all, some(degraded), advice)
}
