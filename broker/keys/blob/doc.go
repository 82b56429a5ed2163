// SPDX-License-Identifier: Apache-2.0

// Package blob encodes wrapped keys with a header that says how to unwrap them: provider, key,
// version of the key, algorithm, and a hash of the context. The page
// docs/formats.md has the layout.
//
// A header has one encoding only, and everything that is not this encoding is refused. So two
// blobs are the same wrapped key if their bytes are equal. The package does no cryptography
// except for the hash of the context.
//
// A header that was parsed is not authenticated yet, so it may have been changed where the blob
// is stored. [Header.Additional] binds header and wrapped key together, if the algorithm can do
// that.
package blob
