// SPDX-License-Identifier: Apache-2.0

package yamlfile

const (
	// MaxFileSize is the largest file, in bytes. It is the limit of a ConfigMap as well.
	MaxFileSize = 1 << 20

	// maxValues is the maximum number of values of one file that are read. The values of an
	// anchor count again for each alias, because a few lines of nested aliases can expand to
	// billions of values.
	maxValues = 1 << 18

	// maxProblems is the maximum number of problems of a file that are listed. Each takes some
	// hundred bytes, and a file can have two problems for each of its values.
	maxProblems = 1000

	// MaxDepth is how deep values of any form (KMS Config and Cache) may nest.
	MaxDepth = 32

	// maxPath is the length in bytes above which a path is not extended. Fields inside such a
	// field have its path. maxPathName is the maximum size in bytes of a name in a path.
	maxPath     = 256
	maxPathName = 64

	// maxMisspelt is the longest name in bytes that Nearest compares.
	maxMisspelt = 128
)
