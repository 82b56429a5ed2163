// SPDX-License-Identifier: Apache-2.0

package coredumps

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Forbid keeps the memory of this process, which has keys, out of core dumps. It
// also keeps other processes of the same user from tracing the process or reading its
// memory through /proc. The limit prevents dumps to files. PR_SET_DUMPABLE also
// prevents dumps that a program of the machine collects.
func Forbid() error {
	var failed []error
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		failed = append(failed, fmt.Errorf("set the limit of core dumps to 0: %w", err))
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		failed = append(failed, fmt.Errorf("make the process not dumpable: %w", err))
	}
	return errors.Join(failed...)
}
