// SPDX-License-Identifier: Apache-2.0

package render

// FieldPath returns the path in a resource of a field of a profile file:
// "API.HashData.HashAlg" is "spec.api.hashData.hashAlg". The empty path is "spec".
func FieldPath(inFile string) string { return path(inFile, true).String() }
