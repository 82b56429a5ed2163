// SPDX-License-Identifier: Apache-2.0

// Package awskms has the key provider of AWS KMS, whose keys never leave it. Only the key
// gateway links it, because its library has more dependencies than a broker should have.
package awskms
