// SPDX-License-Identifier: Apache-2.0

// Package engine does the cryptography of the operations: digests, encryption, signatures and
// certificates. It uses Go's standard library, and other libraries only for ML-DSA and CMS.
// Package profile decides what is allowed. The package does not know transports and files.
package engine
