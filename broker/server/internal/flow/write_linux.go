// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"syscall"
)

// writer writes to a connection.
type writer struct {
	raw syscall.RawConn
	// try is the method value writeNow. It is made once, so that writes do not allocate it.
	try func(uintptr) bool

	// quiet is whether the system call need not be announced, see [read].
	quiet bool
	// rest is what the current write has not written yet, and err why it failed.
	rest []byte
	err  error
}

// open makes w write to the connection.
func (w *writer) open(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("write to the connection: %w", err)
	}
	w.raw, w.try = raw, w.writeNow
	return nil
}

// writeNow writes until nothing is left. It reports false if the client has to read first.
func (w *writer) writeNow(fd uintptr) bool {
	for len(w.rest) > 0 {
		n, err := write(fd, w.rest, w.quiet)
		switch {
		case err == nil:
			w.rest = w.rest[n:]
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return false
		default:
			w.err = fmt.Errorf("write to the connection: %w", err)
			return true
		}
	}
	return true
}

// writeAll writes b. Whoever calls writeAll has locked c.write.
func (c *Conn) writeAll(b []byte) (int, error) {
	w := &c.writer
	w.rest, w.err, w.quiet = b, nil, c.Caller.processors.Quiet()
	err := w.raw.Write(w.try)
	if err == nil {
		err = w.err
	}
	n := len(b) - len(w.rest)
	w.rest = nil
	return n, err
}
