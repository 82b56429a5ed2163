// SPDX-License-Identifier: Apache-2.0

package engine

import "crypto"

// SamePublicKey reports whether two public keys are equal. Keys of different algorithms are
// never equal.
func SamePublicKey(a, b crypto.PublicKey) bool {
	equal, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && equal.Equal(b)
}
