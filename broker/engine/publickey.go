// SPDX-License-Identifier: Apache-2.0

package engine

import "crypto"

// SamePublicKey reports whether two public keys are the same. Keys of different
// algorithms are not.
func SamePublicKey(a, b crypto.PublicKey) bool {
	equal, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && equal.Equal(b)
}
