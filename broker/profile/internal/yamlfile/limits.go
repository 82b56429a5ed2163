// SPDX-License-Identifier: Apache-2.0

package yamlfile

const (
	// MaxFileSize is the largest file, in bytes. It is the limit of a ConfigMap as well.
	MaxFileSize = 1 << 20

	// maxValues is how many values of one file are read. The values of an anchor count
	// again for each alias, because a few lines of nested aliases can stand for billions of
	// values.
	maxValues = 1 << 18

	// MaxDepth is how deep values of any form (KMS Config and Cache) may nest.
	MaxDepth = 32

	// maxPath is the longest path in bytes that gets longer. Fields inside such a field
	// have its path. maxPathName is how many bytes of a name a path has.
	maxPath     = 256
	maxPathName = 64

	// maxMisspelt is the longest name in bytes that Nearest compares.
	maxMisspelt = 128
)
