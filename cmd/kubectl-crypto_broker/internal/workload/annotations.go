// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// TemplatePath returns the path of the annotations in the template of a workload, or nil if the
// template cannot be changed.
func (w Workload) TemplatePath() []string {
	template := []string{"spec", "template", "metadata", "annotations"}
	switch w.Kind {
	case Deployment, StatefulSet, DaemonSet:
		return template
	case kindCronJob:
		return append([]string{"spec", "jobTemplate"}, template...)
	default:
		return nil
	}
}

// Annotate returns a command that sets annotations on the template of a workload. It is empty if
// the template cannot be changed.
func (w Workload) Annotate(annotations map[string]string) string {
	path := w.TemplatePath()
	if path == nil {
		return ""
	}
	var patch any = annotations
	for _, key := range slices.Backward(path) {
		patch = map[string]any{key: patch}
	}
	text, err := json.Marshal(patch)
	if err != nil { // texts in maps: there is none
		return ""
	}
	return fmt.Sprintf("kubectl patch %s -n %s --type merge -p '%s'", w, w.Namespace, strings.ReplaceAll(string(text), "'", `'\''`))
}

// SuchAs ends a sentence about annotations with a command that sets them, if there
// are any to set.
func (w Workload) SuchAs(annotations map[string]string) string {
	if command := w.Annotate(annotations); command != "" && len(annotations) > 0 {
		return ", such as:\n  " + command
	}
	return "."
}
