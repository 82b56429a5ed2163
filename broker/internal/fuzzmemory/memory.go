// SPDX-License-Identifier: Apache-2.0

// Package fuzzmemory lets fuzz targets fail for inputs that take too much memory for their size.
// Only tests use it.
package fuzzmemory

import (
	"runtime/metrics"
	"testing"
)

// Base is the maximum number of bytes that a call may allocate, whatever its input is. Calls of a
// broker need far less: some ten KiB for a certificate, a hundred KiB for an RSA key. Base also
// covers what other goroutines allocate meanwhile, and spans of small objects, which Go counts
// when they are full.
const Base = 16 << 20

// PerByte is the maximum number of bytes that a call may allocate for each byte of its input. It
// is about eight times as many as one of the worst known inputs needs, a subject of very many
// short components.
const PerByte = 1 << 10

// Allocated returns how many bytes of the heap this process has allocated since its start. It
// counts bytes that were freed as well.
func Allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Check runs call, whose input has length bytes. The test fails if call allocates more than
// Base bytes, and perByte bytes for each byte of the input.
func Check(t testing.TB, length, perByte int, call func()) {
	t.Helper()
	before := Allocated()
	call()
	if took, limit := Allocated()-before, Base+uint64(perByte)*uint64(length); took > limit {
		t.Errorf("%d bytes were allocated for an input of %d, expected at most %d", took, length, limit)
	}
}
