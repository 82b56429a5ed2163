// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// private gives the socket its mode before it has a name, so that there is no
// moment in which more than the broker's user could connect (Linux; elsewhere
// the directory protects it).
func private(_, _ string, raw syscall.RawConn) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) }); err != nil {
		return err
	}
	return failed
}
