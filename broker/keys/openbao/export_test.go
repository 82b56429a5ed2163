// SPDX-License-Identifier: Apache-2.0

package openbao

import "testing"

// UseServiceAccountToken makes providers read the token of the service account from a file of
// the test.
func UseServiceAccountToken(t testing.TB, path string) {
	before := serviceAccountToken
	serviceAccountToken = path
	t.Cleanup(func() { serviceAccountToken = before })
}
