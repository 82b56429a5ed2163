// SPDX-License-Identifier: Apache-2.0

package profile

// maxEmpty is the largest file, in bytes, that is looked into for being without
// profiles. The operator writes three then; whoever writes the file by hand may add
// settings.
const maxEmpty = 256

// Empty reports whether a file is in order and has no profiles, so that a broker that
// starts with it waits, as it does without a file: an empty list takes all profiles
// from a broker that serves, and is no first set. A file above 256 bytes is never
// taken for one, which keeps the answer cheap.
func Empty(data []byte) bool {
	if len(data) > maxEmpty {
		return false
	}
	document, problems := Parse(FileName, data)
	return document != nil && len(problems) == 0 && len(document.Profiles) == 0
}
