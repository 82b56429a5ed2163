// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rawio

import "net"

// Writer writes to a connection.
type Writer struct{ conn *net.UnixConn }

// Open makes w write to the connection.
func (w *Writer) Open(conn *net.UnixConn) error {
	w.conn = conn
	return nil
}

// Write writes b.
func (w *Writer) Write(b []byte, _ bool) (int, error) { return w.conn.Write(b) }
