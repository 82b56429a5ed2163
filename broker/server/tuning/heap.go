// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"os"
	"runtime"
	"runtime/debug"
)

// maxReserve is the most that EaseCollector reserves, in bytes.
const maxReserve = 12 << 20

// reserve is never written to, so that no page of it is ever resident.
var reserve []byte //nolint:unused // it only has to be there

// EaseCollector has Go collect garbage less often. Go starts to collect when there
// is as much garbage as there is that is in use, which is next to nothing in a
// broker: under load it would collect a hundred times a second, which took a third
// of all processor time. So there is something in use that takes no memory, 12 MiB
// or less where the memory limit of the process is low; 0 is for no limit. In
// contrast to a high GOGC, this adds the same number of bytes to what is resident
// under load, however much is in use. Whoever sets GOGC decides without it.
func EaseCollector(limit int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	size := int64(maxReserve)
	if limit > 0 {
		size = min(size, limit/8)
	}
	// To collect now would only add half a MiB to what is resident while nobody
	// calls. So the first collection comes when there are 16 MiB, and goes back to
	// the usual way.
	debug.SetGCPercent(400)
	reserve = make([]byte, size)
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, 100)
}

// sentinel is collected by the first collection.
type sentinel struct{ _ *sentinel }
