// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"os"
	"runtime"
	"runtime/debug"
)

// maxReserve is the maximum number of bytes that EaseCollector reserves.
const maxReserve = 12 << 20

// reserve is never written, so no page of it becomes resident.
var reserve []byte //nolint:unused // it only has to be there

// EaseCollector makes Go collect garbage less often. limit is the memory limit of the
// process in bytes, 0 for no limit.
//
// Go starts a collection when the garbage is as large as the live heap. The live heap of
// a broker, and of a key access service, is so small that Go would collect a hundred times
// a second under load, which took a third of a broker's processor time. So EaseCollector allocates 12 MiB, or an eighth of
// limit if that is less, and never touches them: they count as live heap, but take no
// resident memory. A high GOGC would multiply the live heap instead, whatever its size.
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
	// A collection now would only add half a MiB of resident memory to an idle broker.
	// So the first collection comes at a heap of 16 MiB. It collects the sentinel, and
	// the cleanup sets the usual percentage.
	debug.SetGCPercent(400)
	reserve = make([]byte, size)
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, 100)
}

// sentinel is an object that the first collection frees.
type sentinel struct{ _ *sentinel }
