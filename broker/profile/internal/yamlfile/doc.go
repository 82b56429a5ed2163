// SPDX-License-Identifier: Apache-2.0

// Package yamlfile reads a file of profiles from YAML into Go structs. It reports all problems of
// the file at once, with line, column, profile and field.
//
// Reading is strict: an unknown, misspelt or repeated key and a value of the wrong type are
// problems. Package profile and the packages in its folder decide which values are valid. They add
// problems to the same [Report], whose methods check the usual kinds of values. The structs have
// yaml tags. The root has the list Profiles, whose items have a Name.
//
// [Outline] makes the report of a struct that was not read from a file. The report is the
// same as the report of the file that would be written from the struct.
package yamlfile
