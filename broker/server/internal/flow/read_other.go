// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package flow

import "syscall"

// readiness does nothing on systems other than Linux. gRPC reads with a permanent buffer
// for each connection there.
type readiness struct{}

// open does nothing.
func (*readiness) open(syscall.Conn) error { return nil }
