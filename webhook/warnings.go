// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// maxUnknownProfiles is how many of them a warning names.
const maxUnknownProfiles = 5

// unknownProfiles warns of profiles that a pod lists and that its namespace does
// not have now. They may come later, so that this is no reason to refuse the pod.
func (w *wishes) unknownProfiles(namespace string, file []byte) []string {
	if len(file) == 0 || w.profiles == nil && len(w.by) == 0 {
		return nil
	}
	document, _ := profile.Parse(profile.FileName, file) // what is wrong with it is for the broker to tell
	if document == nil {
		return nil
	}
	known := map[string]bool{}
	for _, p := range document.Profiles {
		known[p.Name] = true
	}
	lists := map[string][]string{v1alpha1.AllowedProfilesAnnotation: w.profiles}
	for container, profiles := range w.by {
		lists[v1alpha1.ContainerProfilesPrefix+container] = profiles
	}
	var warnings []string
	for _, annotation := range slices.Sorted(maps.Keys(lists)) {
		var unknown []string
		for _, name := range lists[annotation] {
			if !known[name] {
				unknown = append(unknown, quoted(name).String())
			}
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
