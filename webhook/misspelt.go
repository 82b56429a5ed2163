// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// unknownAnnotation is the sentence about an annotation of this project that
// does not exist. It would be ignored otherwise, and whoever wrote it would
// believe that it counts.
func unknownAnnotation(name string) string {
	known := make([]string, 0, len(annotationsRead)+1)
	for _, annotation := range annotationsRead {
		known = append(known, strings.TrimPrefix(annotation.name, v1alpha1.AnnotationPrefix))
	}
	known = append(known, strings.TrimPrefix(v1alpha1.ContainerProfilesPrefix, v1alpha1.AnnotationPrefix)+"<container>")
	sentence := fmt.Sprintf("metadata.annotations[%s]: found an unknown annotation, expected one of %s%s",
		name, v1alpha1.AnnotationPrefix, strings.Join(known, ", "))
	if near := nearest(strings.TrimPrefix(name, v1alpha1.AnnotationPrefix), known); near != "" {
		sentence += fmt.Sprintf("; did you mean %s%s?", v1alpha1.AnnotationPrefix, near)
	}
	return sentence
}

// nearest returns the known name that was most likely meant, or nothing where
// none is near. A name in front of a dot is compared alone, for those that end
// with the name of a container.
func nearest(found string, known []string) string {
	found, container, single := strings.Cut(strings.ToLower(strings.ReplaceAll(found, "_", "-")), ".")
	best, least := "", 4
	for _, candidate := range known {
		name, _, ofContainer := strings.Cut(candidate, ".")
		if single != ofContainer {
			continue
		}
		if d := distance(found, name); d < least && 2*d <= len(name) {
			best, least = candidate, d
		}
	}
	if best != "" && single {
		best = strings.TrimSuffix(best, "<container>") + container
	}
	return best
}

// distance is the number of letters that are added, left out or replaced between
// two words (Levenshtein). A name has at most 63 letters.
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			changed := previous[j]
			if a[i] != b[j] {
				changed++
			}
			current[j+1] = min(changed, previous[j+1]+1, current[j]+1)
		}
		previous = current
	}
	return previous[len(b)]
}
