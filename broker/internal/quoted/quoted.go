// SPDX-License-Identifier: Apache-2.0

package quoted

import "strings"

// part is the number of consecutive bytes that count as a quotation.
const part = 12

// Any reports whether text contains 12 consecutive bytes of one of the secrets, or the whole of a
// shorter secret.
func Any(text string, secrets ...string) bool {
	for _, secret := range secrets {
		switch {
		case secret == "":
		case len(secret) <= part:
			if strings.Contains(text, secret) {
				return true
			}
		default:
			for at := 0; at+part <= len(text); at++ {
				if strings.Contains(secret, text[at:at+part]) {
					return true
				}
			}
		}
	}
	return false
}
