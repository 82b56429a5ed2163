// SPDX-License-Identifier: Apache-2.0

package profile

// maxEmpty is the largest size in bytes of a file without profiles. The operator writes
// three bytes. A file that was written by hand may have settings.
const maxEmpty = 256

// Empty reports whether a file is valid and has no profiles. A broker that starts with such
// a file waits, as it does without a file. A broker that serves profiles takes all of them
// out of service. Empty reports false for files above 256 bytes, so that it is always quick.
func Empty(data []byte) bool {
	if len(data) > maxEmpty {
		return false
	}
	document, problems := Parse(FileName, data)
	return document != nil && len(problems) == 0 && len(document.Profiles) == 0
}
