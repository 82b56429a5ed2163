// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// maxUnknownProfiles is how many of them a warning names.
const maxUnknownProfiles = 5

// unknownProfiles warns of profiles that a pod lists and that its namespace does
// not have now. They may come later, so that this is no reason to refuse the pod.
// Of what was meant it finds names of another case: whatever is near would take a
// comparison with each name of the namespace.
func (w *wishes) unknownProfiles(namespace string, file []byte) []string {
	if len(file) == 0 || w.profiles == nil && len(w.by) == 0 {
		return nil
	}
	document, _ := profile.Parse(profile.FileName, file) // what is wrong with it is for the broker to tell
	if document == nil {
		return nil
	}
	known, lower := map[string]bool{}, map[string]string{}
	for _, p := range document.Profiles {
		known[p.Name] = true
		lower[strings.ToLower(p.Name)] = p.Name
	}
	lists := map[string][]string{contract.AllowedProfilesAnnotation: w.profiles}
	for container, profiles := range w.by {
		lists[contract.ContainerProfilesPrefix+container] = profiles
	}
	var warnings []string
	for _, annotation := range slices.Sorted(maps.Keys(lists)) {
		var unknown []string
		for _, name := range lists[annotation] {
			if known[name] {
				continue
			}
			text := quoted(name).String()
			if meant, found := lower[strings.ToLower(name)]; found {
				text += fmt.Sprintf(" (did you mean %s?)", quoted(meant))
			}
			unknown = append(unknown, text)
		}
		if more := len(unknown) - maxUnknownProfiles; more > 0 {
			unknown = append(unknown[:maxUnknownProfiles], fmt.Sprintf("%d more", more))
		}
		if len(unknown) > 0 {
			warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: found profiles that namespace %q does not have now: %s; calls with them fail until it does",
				annotation, namespace, strings.Join(unknown, ", ")))
		}
	}
	return warnings
}

// inUse warns of the deletion of a profile that brokers serve, by what the
// operator wrote into its status last: to count pods would take as long as there
// are pods. where is the namespace of a CryptoProfile, empty for a
// ClusterCryptoProfile.
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

// servedReasons are those of the condition Accepted with which all pods that a
// status counts are served a profile of the name, this one or the one before.
var servedReasons = []string{v1alpha1.ReasonValid, v1alpha1.ReasonDowngradeWithheld, v1alpha1.ReasonNotWritten}
