// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the processor time of a process since its start.
func ProcessorTime(process int) (time.Duration, error) {
	// The clock of another process is its id, inverted (clock_getcpuclockid(3)).
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^process)<<3|unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// ProcessMemory returns fields of /proc/PID/status, such as VmRSS, in bytes.
func ProcessMemory(process int, fields ...string) ([]int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return nil, err
	}
	found := make([]int64, len(fields))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if i := slices.Index(fields, key); i >= 0 {
			var kib int64
			if _, err := fmt.Sscan(value, &kib); err != nil {
				return nil, fmt.Errorf("/proc/PID/status has %q: %w", line, err)
			}
			found[i] = kib << 10
		}
	}
	return found, nil
}
