// SPDX-License-Identifier: Apache-2.0

// Package segment encrypts data of any size in segments, so that it needs memory for one
// segment. The construction is the streaming AEAD AES-GCM-HKDF of Tink, with AES-256, HKDF with
// SHA-256 and segments of 64 KiB (IACR ePrint 2015/189 and 2020/1019). The page docs/formats.md
// has the layout.
//
// Each stream has a key of its own, which HKDF derives from the data key, a random salt and the
// additional data. So a data key may encrypt any number of streams. Each segment is encrypted by
// AES-GCM. Its nonce has the number of the segment, and whether it is the last. So a segment that
// was changed, moved, repeated or taken from another stream does not authenticate, and a missing
// end is noticed.
//
// A [Decrypter] writes no byte that is not authenticated. If Close returns an error, the caller
// still has to discard what was written, because only Close knows that nothing is missing.
package segment
