// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// maxUnknownProfiles is the maximum number of unknown profiles that a warning names.
const maxUnknownProfiles = 5

// unknownProfiles returns warnings about profiles that a pod lists and that its namespace does
// not have now. Somebody may create them later, so the pod is not refused. It suggests only a
// name that differs in upper and lower case, because a search for similar names would compare
// with each name of the namespace.
func (o *podOptions) unknownProfiles(namespace string, file []byte) []string {
	of, sessions := o.sessionProfile()
	if len(file) == 0 || o.profiles == nil && len(o.by) == 0 && sessions == "" {
		return nil
	}
	document, _ := profile.Parse(profile.FileName, file) // the broker reports what is wrong with it
	if document == nil {
		return nil
	}
	known, lower := map[string]bool{}, map[string]string{}
	for _, p := range document.Profiles {
		known[p.Name] = true
		lower[strings.ToLower(p.Name)] = p.Name
	}
	lists := map[string][]string{contract.AllowedProfilesAnnotation: o.profiles}
	for container, profiles := range o.by {
		lists[contract.ContainerProfilesPrefix+container] = profiles
	}
	if sessions != "" {
		lists[of] = []string{sessions}
	}
	var warnings []string
	for _, annotation := range slices.Sorted(maps.Keys(lists)) {
		var unknown []string
		for _, name := range lists[annotation] {
			if known[name] {
				continue
			}
			text := textlimits.Quoted(name).String()
			if meant, found := lower[strings.ToLower(name)]; found {
				text += fmt.Sprintf(" (did you mean %s?)", textlimits.Quoted(meant))
			}
			unknown = append(unknown, text)
		}
		if more := len(unknown) - maxUnknownProfiles; more > 0 {
			unknown = append(unknown[:maxUnknownProfiles], fmt.Sprintf("%d more", more))
		}
		if len(unknown) > 0 {
			warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: found profiles that namespace %q does not have now: %s; calls with these profiles fail until the namespace has them",
				annotation, namespace, strings.Join(unknown, ", ")))
		}
	}
	return warnings
}
