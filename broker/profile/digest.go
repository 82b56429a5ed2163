// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest identifies a set by the bytes of its file: "sha256:" and 64
// lower-case hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
