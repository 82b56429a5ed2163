// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package flow

import "syscall"

// readiness does nothing on systems other than Linux. gRPC reads with a permanent buffer
// for each connection there.
type readiness struct{}

// open does nothing.
func (*readiness) open(syscall.Conn) error { return nil }

// writer does nothing on systems other than Linux. Package net writes there.
type writer struct{}

// open does nothing.
func (*writer) open(syscall.Conn) error { return nil }

// writeAll writes b.
func (c *Conn) writeAll(b []byte) (int, error) { return c.UnixConn.Write(b) }
