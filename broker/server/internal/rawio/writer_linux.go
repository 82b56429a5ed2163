// SPDX-License-Identifier: Apache-2.0

package rawio

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Writer writes to a connection.
type Writer struct {
	raw syscall.RawConn
	// try is the method value writeNow. It is made once, so that writes do not allocate it.
	try func(uintptr) bool

	// quiet has the meaning that it has in [Read].
	quiet bool
	// rest is the part that the current write has not written yet, and err is its error.
	rest []byte
	err  error
}

// Open makes w write to the connection.
func (w *Writer) Open(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("write to the connection: %w", err)
	}
	w.raw, w.try = raw, w.writeNow
	return nil
}

// writeNow writes until nothing is left. It reports false if the client has to read first.
func (w *Writer) writeNow(fd uintptr) bool {
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

// Write writes b. quiet is as in [Read]. Only one call at a time may write.
func (w *Writer) Write(b []byte, quiet bool) (int, error) {
	w.rest, w.err, w.quiet = b, nil, quiet
	err := w.raw.Write(w.try)
	if err == nil {
		err = w.err
	}
	n := len(b) - len(w.rest)
	w.rest = nil
	return n, err
}
