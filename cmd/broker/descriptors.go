// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

const (
	// ownDescriptors is how many file descriptors a broker may need at one time
	// beside connections: standard streams and the log (3), what Go's runtime waits
	// with (3), the locks, the sockets' directories while they are made, and the
	// status port (4), to watch profiles and keys (2), to read them and keep what is
	// served (8), metrics about the process for four scrapers (16), an exporter of
	// spans with its connections, questions for addresses and files (16), and as
	// many again for what libraries do at times.
	ownDescriptors = 2 * (3 + 3 + 4 + 2 + 8 + 16 + 16)
	// statusDescriptors are those of the status port's connections, with one that is
	// about to make room.
	statusDescriptors = telemetry.MaxStatusConnections + 1
	// connectionsPerCaller is the least that each caller must be able to have.
	connectionsPerCaller = 4
)

// connectionLimit is how many connections callers may have together, where a process
// may have limit file descriptors: those that the broker itself needs, for its files
// above all, are never theirs.
func connectionLimit(limit uint64, callers int) (int, error) {
	callers = max(1, callers)
	// A socket for each caller, and one more connection, which the broker refuses.
	reserve := uint64(ownDescriptors + statusDescriptors + 2*callers)
	least := reserve + uint64(connectionsPerCaller*callers)
	if limit < least {
		return 0, fmt.Errorf("found a limit of %d open files for the process, expected at least %d: raise it, by ulimit -n, LimitNOFILE= of systemd or the container engine", limit, least)
	}
	return int(min(limit-reserve, math.MaxInt32)), nil
}

// openFiles is the limit of open files of this process. Go has raised it to the
// highest that the process may have.
func openFiles() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return limit.Cur, nil
}
