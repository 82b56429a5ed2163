// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/limits"
)

// unknownAnnotation is an annotation of this project that does not exist. It would
// be ignored otherwise, and whoever wrote it would believe that it counts.
type unknownAnnotation string

// String is the sentence about it, less those that there are.
func (u unknownAnnotation) String() string {
	name, meant := string(u), ""
	if near := nearest(strings.TrimPrefix(name, contract.AnnotationPrefix), annotationNames()); near != "" {
		meant = fmt.Sprintf(" (did you mean %s%s?)", contract.AnnotationPrefix, near)
	}
	return fmt.Sprintf("metadata.annotations[%s]: found an unknown annotation%s", limits.Cut(name, limits.MaxQuoted), meant)
}

// annotationNames are the names of all annotations, less the prefix.
func annotationNames() []string {
	names := make([]string, len(annotationsRead))
	for i, row := range annotationsRead {
		names[i] = strings.TrimPrefix(row.name, contract.AnnotationPrefix)
		if row.isPrefix() {
			names[i] += "<container>"
		}
	}
	return names
}

// knownAnnotations is what to write in the place of one that does not exist.
func knownAnnotations() string {
	return "expected one of " + contract.AnnotationPrefix + strings.Join(annotationNames(), ", ")
}

// nearest returns the known name that was most likely meant, or nothing where
// none is near. A name in front of a dot is compared alone, for those that end
// with the name of a container.
func nearest(found string, known []string) string {
	found, container, single := strings.Cut(strings.ReplaceAll(found, "_", "-"), ".")
	var names []string
	for _, candidate := range known {
		if name, _, ofContainer := strings.Cut(candidate, "."); single == ofContainer {
			names = append(names, name)
		}
	}
	best := profile.Nearest(found, names)
	if best != "" && single {
		best += "." + container
	}
	return best
}
