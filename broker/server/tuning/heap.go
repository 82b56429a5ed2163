// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// maxReserve is the maximum number of bytes that EaseCollector reserves.
	maxReserve = 12 << 20
	// firstGarbage is how many bytes a program allocates beside the reserve before the
	// first collection. A broker with all its features allocates less than 4 MiB until
	// it serves.
	firstGarbage = 8 << 20
	// smallestHeap is the heap size, in bytes, at which Go collects for the first time
	// where GOGC is 100. It grows with GOGC, see the package runtime/debug.
	smallestHeap = 4 << 20
)

// reserve is never written, so no page of it becomes resident.
var reserve []byte //nolint:unused // it only has to be there

// EaseCollector makes Go collect garbage less often. limit is the memory limit of the
// process in bytes, 0 for no limit.
//
// Go starts a collection when the garbage is as large as the live heap. The live heap of
// a broker, and of a key access service, is so small that Go would collect a hundred times
// a second under load, which took a third of a broker's processor time. So EaseCollector
// allocates 12 MiB, or an eighth of limit if that is less, and never touches them: they
// count as live heap, but take no resident memory. A high GOGC would multiply the live
// heap instead, whatever its size.
//
// EaseCollector also delays the first collection. A collection reads tables of the whole
// program, which can make 4 MiB of an idle broker resident, and it costs time at the start.
//
// EaseCollector does nothing if the environment sets GOGC.
func EaseCollector(limit int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	size := int64(maxReserve)
	if limit > 0 {
		size = min(size, limit/8)
	}
	// The first collection frees the sentinel, and the cleanup sets the usual percentage.
	debug.SetGCPercent(int(100 * (size + firstGarbage) / smallestHeap))
	reserve = make([]byte, size)
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, 100)
}

// sentinel is an object that the first collection frees.
type sentinel struct{ _ *sentinel }
