// SPDX-License-Identifier: Apache-2.0

// Package yamlfile reads a file of profiles from YAML into Go structs, and reports
// all that is wrong with it at once: with line, column, profile and field.
//
// Reading is strict: an unknown, misspelt or repeated key and a value of the wrong
// type are problems. What the values mean is for package profile to judge, which
// adds its problems to the same Report. The structs name their fields by tags as
// for package yaml; the root has the list Profiles, whose items have a Name.
//
// Outline does for a struct that was not read from a file what Read does for a file:
// so that it is judged like the file that would be written from it.
package yamlfile
