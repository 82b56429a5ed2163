// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// printedCommands is the maximum number of printed commands that allow a profile.
const printedCommands = 10

// allowing is the beginning of the command at the end of the condition DowngradeWithheld.
const allowing = "kubectl annotate "

// explainBaseline explains why the operator serves nothing new in a namespace whose baseline is
// missing, and returns the commands that help.
func explainBaseline(ctx context.Context, client kubernetes.Interface, namespace string, namespaceLabels map[string]string, e *explanation) (advice string) {
	e.add("profiles", "the operator does not know what namespace %s served before (BaselineMissing): the ConfigMap %s was changed, deleted or put back while no operator ran",
		namespace, v1alpha1.ProfilesConfigMap)
	e.add("profiles", "until each profile of the namespace is allowed, running brokers keep the set that they have, and new brokers wait")
	see := fmt.Sprintf("kubectl describe cprof,ccprof -n %s", namespace)
	profiles, _ := profilesOf(ctx, client, namespace, namespaceLabels, e)
	var commands []string
	for _, p := range profiles {
		withheld := meta.FindStatusCondition(p.conditions, v1alpha1.ConditionDowngradeWithheld)
		if withheld == nil || withheld.Status != metav1.ConditionTrue {
			continue
		}
		if begin := strings.LastIndex(withheld.Message, allowing); begin >= 0 {
			commands = append(commands, withheld.Message[begin:])
		}
	}
	if len(commands) == 0 {
		return fmt.Sprintf("Allow each profile of the namespace by the command in its condition %s: %s", v1alpha1.ConditionDowngradeWithheld, see)
	}
	more := ""
	if n := len(commands) - printedCommands; n > 0 {
		commands, more = commands[:printedCommands], fmt.Sprintf("\nThe commands for %d more are in their conditions %s: %s", n, v1alpha1.ConditionDowngradeWithheld, see)
	}
	return fmt.Sprintf("Look at each of these profiles. Where it is what the namespace should serve, somebody with the verb %q on it runs:\n  %s%s",
		downgrade.Verb, strings.Join(commands, "\n  "), more)
}
