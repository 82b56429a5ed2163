// SPDX-License-Identifier: Apache-2.0

package profile

const (
	// FileName is the name of the profile file in its directory.
	FileName = "Profiles.yaml"

	// MaxNameLength is the longest profile name, in bytes.
	MaxNameLength = 64

	// MaxFileSize is the largest profile file, in bytes. A ConfigMap holds no
	// more than this either.
	MaxFileSize = 1 << 20

	// NewestFormatVersion is the newest version of the field table this
	// package reads. Version 0 is the released format, version 1 adds KeyIds,
	// Callers, SubjectAltNames, CRLDistributionPoints, AllowSHA1Requests,
	// ShortTagLength, Audit, NonceStrategy "random" and the signature algorithms
	// rsa-pss, ed25519 and ml-dsa.
	NewestFormatVersion = 1

	// maxNodes bounds the values read from one file, each alias counted as
	// often as it is used: a few lines of nested aliases otherwise stand for
	// billions of values.
	maxNodes = 1 << 18

	// maxDepth bounds how deep free-form values (KMS Config and Cache) nest.
	maxDepth = 32

	// maxPath is how long the path of a field may be, in bytes, before what is in
	// that field has no path of its own; maxPathName is how much a path has of a
	// name.
	maxPath     = 256
	maxPathName = 64

	// maxTextLength is the longest free text, in bytes (Deprecation, KMS Client).
	maxTextLength = 1024

	// MaxKeyIDLength is the longest key id, in bytes, as on the wire.
	MaxKeyIDLength = 64
)
