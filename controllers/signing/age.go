// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Age is what the metadata of the Secret says about its keys.
type Age struct {
	// Since is when the current key was made; zero if that is not known.
	Since time.Time
	// Retired are the ids of the retired keys, sorted.
	Retired []string
	// Asked reports whether somebody has asked for another key that there is not yet.
	Asked bool
}

// AgeOf returns what the metadata of the signing Secret says. It needs no key.
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
