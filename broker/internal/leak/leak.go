// SPDX-License-Identifier: Apache-2.0

package leak

import "bytes"

// part is the number of consecutive bytes that count as a quotation.
const part = 12

// In reports whether text contains 12 consecutive bytes of one of the secrets, or the whole of a
// shorter secret. It makes no copy of a secret.
func In(text string, secrets ...[]byte) bool {
	searched := []byte(text)
	for _, secret := range secrets {
		switch {
		case len(secret) == 0:
		case len(secret) <= part:
			if bytes.Contains(searched, secret) {
				return true
			}
		default:
			for at := 0; at+part <= len(searched); at++ {
				if bytes.Contains(secret, searched[at:at+part]) {
					return true
				}
			}
		}
	}
	return false
}
