// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// private gives the socket its mode before the socket has a name. So there is no moment in
// which another user than the broker's could connect. It does nothing on systems other than
// Linux, where the directory protects the socket.
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
