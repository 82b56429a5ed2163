// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

const (
	// ownDescriptors is the maximum number of file descriptors that a broker may need at one time
	// besides connections: standard streams and the log (3), Go's runtime (3), the locks, the
	// directories of sockets while they are created, and the status port (4), watching profiles
	// and keys (2), reading them and keeping the served set (8), metrics about the process for
	// four scrapers (16), an exporter of spans with its connections, DNS and files (16), and as
	// many again for libraries.
	ownDescriptors = 2 * (3 + 3 + 4 + 2 + 8 + 16 + 16)
	// statusDescriptors is the number of file descriptors that the connections of the status port
	// take, with one that is being closed to make room.
	statusDescriptors = telemetry.MaxStatusConnections + 1
	// connectionsPerCaller is the number of connections that each caller must be able to open.
	connectionsPerCaller = 4
)

// ConnectionLimit returns how many connections callers may have together, by the limit of
// open files of this process.
func ConnectionLimit(callers int) (int, error) {
	files, err := openFiles()
	if err != nil {
		return 0, err
	}
	return connectionLimit(files, callers)
}

// connectionLimit returns how many connections callers may have together if the process
// may have limit file descriptors. The descriptors that the broker itself needs are not
// for callers.
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

// openFiles returns the limit of open files of this process. Go has raised it to the
// highest value that the process may have.
func openFiles() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return limit.Cur, nil
}
