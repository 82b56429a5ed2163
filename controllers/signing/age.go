// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Age has the facts about the keys in the metadata of the Secret.
type Age struct {
	// Since is the time at which the current key was made, or zero if it is not known.
	Since time.Time
	// Retired are the ids of the retired keys, sorted.
	Retired []string
	// Asked reports whether somebody has asked for a new key that has not been made yet.
	Asked bool
}

// AgeOf reads the metadata of the signing Secret. It does not read the keys.
func AgeOf(secret metav1.Object) Age {
	var age Age
	for name, value := range secret.GetAnnotations() {
		switch {
		case name == currentSinceAnnotation:
			if since, err := time.Parse(time.RFC3339, value); err == nil {
				age.Since = since
			}
		case name == RotateAnnotation:
			age.Asked = true
		case strings.HasPrefix(name, retiredSincePrefix):
			age.Retired = append(age.Retired, strings.TrimPrefix(name, retiredSincePrefix))
		}
	}
	slices.Sort(age.Retired)
	return age
}
