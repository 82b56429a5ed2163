// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// unknownAnnotation is the name of an unknown annotation with the prefix of this project. It is
// refused, because its author expects an effect.
type unknownAnnotation string

// String returns the sentence about the annotation, without the list of known ones.
func (u unknownAnnotation) String() string {
	name, meant := string(u), ""
	if near := nearest(strings.TrimPrefix(name, contract.AnnotationPrefix), annotationNames()); near != "" {
		meant = fmt.Sprintf(" (did you mean %s%s?)", contract.AnnotationPrefix, near)
	}
	return fmt.Sprintf("metadata.annotations[%s]: found an unknown annotation%s", textlimits.Cut(name, textlimits.MaxQuoted), meant)
}

// annotationNames returns the names of all annotations without the prefix.
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

// knownAnnotations returns the end of a sentence, with the names of all annotations.
func knownAnnotations() string {
	return "expected one of " + contract.AnnotationPrefix + strings.Join(annotationNames(), ", ")
}

// nearest returns the known name that the author most likely meant, or an empty text if no name
// is near. For a name that ends with a container, only the part before the dot is compared.
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
