// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"fmt"
	"net"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"golang.org/x/sys/unix"
)

// PeerOf returns the user and the group that connected, from the kernel (SO_PEERCRED,
// unix(7)). They are the effective ids of the process when it connected, as the broker's
// user namespace sees them.
func PeerOf(conn *net.UnixConn) (callers.Caller, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return callers.Caller{}, fmt.Errorf("read the peer's credentials: %w", err)
	}
	var ucred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		ucred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return callers.Caller{}, fmt.Errorf("read the peer's credentials: %w", err)
	}
	if failed != nil {
		return callers.Caller{}, fmt.Errorf("read the peer's credentials: %w", failed)
	}
	return callers.Caller{UID: ucred.Uid, GID: ucred.Gid, Known: true}, nil
}
