// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// forbidDumps keeps the memory of this process, which has keys in it, out of core
// dumps, and from other processes of its user: they can neither trace it nor read it
// by /proc. The limit is for dumps to files; the other setting is for those that a
// program of the machine collects, too.
func forbidDumps() error {
	var failed []error
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		failed = append(failed, fmt.Errorf("set the limit of core dumps to 0: %w", err))
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		failed = append(failed, fmt.Errorf("make the process one that is not dumped: %w", err))
	}
	return errors.Join(failed...)
}
