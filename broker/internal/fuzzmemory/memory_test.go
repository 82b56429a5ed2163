// SPDX-License-Identifier: Apache-2.0

package fuzzmemory_test

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
)

// recorder notes whether a test would have failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// kept forces allocations of a call onto the heap.
var kept []byte

func TestACallThatAllocates(t *testing.T) {
	const extent = 8 << 20 // other allocations of the process are smaller
	for sentence, test := range map[string]struct {
		allocates, length, perByte int
		fails                      bool
	}{
		"nothing passes": {0, 0, 0, false},
		"less than the base passes with no input":           {fuzzmemory.Base - extent, 0, 100, false},
		"more than the base fails with no input":            {fuzzmemory.Base + extent, 0, 100, true},
		"as much as its input may have passes":              {fuzzmemory.Base, 1 << 20, 8, false},
		"more than the base and what its input has fails":   {fuzzmemory.Base + 2*extent, 1 << 20, 8, true},
		"in pieces what is too much in one fails, too":      {-(fuzzmemory.Base + extent), 0, 0, true},
		"in pieces as much as its input may have passes":    {-(fuzzmemory.Base + extent), 1 << 20, 16, false},
		"more than the base passes where the input is long": {fuzzmemory.Base + extent, 2 << 20, 8, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &recorder{TB: t}
			fuzzmemory.Check(r, test.length, test.perByte, func() {
				const piece = 1 << 10
				for n := -test.allocates; n > 0; n -= piece {
					kept = make([]byte, piece)
				}
				kept = make([]byte, max(test.allocates, 0))
			})
			if r.failed != test.fails {
				t.Errorf("failed: %t, want %t", r.failed, test.fails)
			}
		})
	}
}
