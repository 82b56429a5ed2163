// SPDX-License-Identifier: Apache-2.0

package algorithm

import "strings"

// row is a row of a registry. The first row of a registry is blank, so that the zero value of an
// algorithm is not an algorithm.
type row interface {
	// entry returns the name of the algorithm, and the first version of the profile format that has it.
	entry() (name string, since Format)
}

// find returns the algorithm with a name. Upper and lower case do not matter.
func find[Algorithm ~uint8, R row](registry []R, name string) (Algorithm, bool) {
	for i, r := range registry {
		if known, _ := r.entry(); known != "" && strings.EqualFold(known, name) {
			return Algorithm(i), true
		}
	}
	return 0, false
}

// namesOf returns the names of all algorithms of a registry.
func namesOf[R row](registry []R) []string {
	var names []string
	for _, r := range registry[1:] {
		name, _ := r.entry()
		names = append(names, name)
	}
	return names
}

// formatOf returns the first version of the profile format that has the algorithm with a name. It
// is Format0 for an empty name, and the newest version for an unknown name.
func formatOf[R row](registry []R, name string) Format {
	if name == "" {
		return Format0
	}
	if i, known := find[uint8](registry, name); known {
		_, since := registry[i].entry()
		return since
	}
	return newest
}
