// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"

const (
	// FileName is the name of the profile file in its directory.
	FileName = "Profiles.yaml"

	// MaxNameLength is the longest profile name, in bytes.
	MaxNameLength = 64

	// MaxFileSize is the largest profile file, in bytes. It is the limit of a ConfigMap as
	// well.
	MaxFileSize = yamlfile.MaxFileSize

	// NewestFormatVersion is the newest version of the profile format that this
	// package reads. Version 0 is the released format. Version 1 adds KeyIds,
	// Callers, SubjectAltNames, CRLDistributionPoints, AllowSHA1Requests,
	// ShortTagLength, Audit, NonceStrategy "random" and the signature algorithms
	// rsa-pss, ed25519 and ml-dsa.
	NewestFormatVersion = 1

	// maxTextLength is the longest free text, in bytes (Deprecation, KMS Client).
	maxTextLength = 1024

	// MaxKeyIDLength is the longest key id, in bytes, as on the wire.
	MaxKeyIDLength = 64
)
