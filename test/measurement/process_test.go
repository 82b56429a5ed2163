// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"os"
	"testing"
)

func TestAProcessHasUsedProcessorTimeAndMemory(t *testing.T) {
	if took, err := ProcessorTime(os.Getpid()); err != nil || took <= 0 {
		t.Errorf("found the processor time %s and the error %v, expected some time", took, err)
	}
	memory, err := ProcessMemory(os.Getpid(), "VmHWM", "VmRSS")
	if err != nil || memory[1] < 1<<20 || memory[0] < memory[1] {
		t.Errorf("found %d bytes and the error %v, expected a MiB or more, and a peak that is not below it", memory, err)
	}
}
