// SPDX-License-Identifier: Apache-2.0

package downgrade

import "testing"

func BenchmarkCompare(b *testing.B) {
	old, changed := parse(b, complete), parse(b, complete)
	changed.API.HashData.HashAlg = "sha-256"
	for b.Loop() {
		if len(weakenings(old, changed)) == 0 {
			b.Fatal("nothing is weaker")
		}
	}
}
