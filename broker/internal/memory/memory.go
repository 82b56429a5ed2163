// SPDX-License-Identifier: Apache-2.0

// Package memory lets fuzz targets fail on inputs that take memory out of
// proportion. Only tests use it.
package memory

import (
	"runtime/metrics"
	"testing"
)

// Base is what a call may allocate whatever its input is, in bytes. It is far more
// than a broker's call takes: a certificate some ten KiB, a key of RSA a hundred.
// It is also more than goroutines that have nothing to do with the call allocate
// meanwhile, and than the spans of small objects, which are counted when they are
// full.
const Base = 16 << 20

// PerByte is what a byte of input may have allocated, in bytes: about eight times
// what one of the worst known inputs has, a subject of very many short components.
const PerByte = 1 << 10

// Allocated is how many bytes of the heap this process ever allocated, those that
// were collected since among them.
func Allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Check calls what is tested, with an input of length bytes of which each may have
// perByte bytes allocated. The test fails where these and Base are not enough.
func Check(t testing.TB, length, perByte int, call func()) {
	t.Helper()
	before := Allocated()
	call()
	if took, limit := Allocated()-before, Base+uint64(perByte)*uint64(length); took > limit {
		t.Errorf("%d bytes were allocated for an input of %d, expected at most %d", took, length, limit)
	}
}
