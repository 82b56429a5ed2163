// SPDX-License-Identifier: Apache-2.0

package yamlfile

const (
	// MaxFileSize is the largest file, in bytes. A ConfigMap holds no more than this
	// either.
	MaxFileSize = 1 << 20

	// MaxValues bounds the values read from one file, each alias counted as
	// often as it is used: a few lines of nested aliases otherwise stand for
	// billions of values.
	MaxValues = 1 << 18

	// MaxDepth bounds how deep free-form values (KMS Config and Cache) nest.
	MaxDepth = 32

	// maxPath is how long the path of a field may be, in bytes, before what is in
	// that field has no path of its own; maxPathName is how much a path has of a
	// name.
	maxPath     = 256
	maxPathName = 64

	// maxMisspelt is how long a name may be, in bytes, for Nearest to look at it.
	maxMisspelt = 128
)
