// SPDX-License-Identifier: Apache-2.0

// Package awskms has the key provider of AWS KMS. Keys never leave AWS KMS. Only the key gateway
// links the package, because its library has more dependencies than a broker should have.
package awskms
