// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rawio"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
)

// readiness reads from a connection. It takes a buffer only when data has arrived, so an idle
// connection holds no buffer.
type readiness struct {
	raw syscall.RawConn
	// try is the method value readNow. It is made once, so that reads do not allocate it.
	try func(uintptr) bool

	// consecutive is the number of consecutive reads that found something to read.
	consecutive int

	// The other fields belong to the current read.
	conn   *Conn
	pool   mem.BufferPool
	size   int
	buffer *[]byte
	n      int
	err    error
	// needsTurn reports whether no turn of the caller was free, so that the connection has to wait
	// for one. hasTurn reports whether it has waited and has its turn.
	needsTurn, hasTurn bool
}

// quietReads is the maximum number of consecutive reads that may find something to read while the
// process uses one processor. A connection with more of them always has something to read, and
// while a single processor serves it, the process would not notice data on other connections.
// This number of reads takes some milliseconds. Go's monitor thread looks for data on other
// connections only after 10 ms.
const quietReads = 128

// open makes r read from the connection.
func (r *readiness) open(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("read from the connection: %w", err)
	}
	r.raw, r.try = raw, r.readNow
	return nil
}

// readNow reads what the client has sent, in a turn of the caller. It reports false if
// there is nothing to read yet.
func (r *readiness) readNow(fd uintptr) bool {
	if !r.hasTurn && !r.conn.takeTurn(false) {
		r.needsTurn = true
		r.conn.Caller.processors.UseAll()
		return true
	}
	r.buffer = r.pool.Get(r.size)
	into := *r.buffer
	if r.conn.Caller.throttled() {
		into = into[:min(len(into), throttledRead)]
	}
	for {
		r.n, r.err = rawio.Read(fd, into, r.conn.Caller.processors.Quiet())
		if !errors.Is(r.err, syscall.EINTR) {
			break
		}
	}
	if r.err == nil && r.n > 0 {
		r.conn.Caller.received(r.n)
		if r.consecutive++; r.n >= work.QuietBytes || r.consecutive >= quietReads {
			r.conn.Caller.processors.UseAll()
		}
		return true
	}
	r.pool.Put(r.buffer)
	r.buffer, r.hasTurn, r.consecutive = nil, false, 0
	r.conn.endTurn()
	return !errors.Is(r.err, syscall.EAGAIN)
}

// ReadOnReady waits until there is something to read, takes a buffer of size bytes from pool and
// reads into it. The caller puts the buffer back. ReadOnReady returns io.EOF without a buffer if
// the client has closed its side.
//
// gRPC reads with this method if a connection has it, and otherwise with Read and a permanent
// buffer for each connection. It never calls the method concurrently, and it has used the bytes
// of one call before it makes the next call.
func (c *Conn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	c.endTurn()
	c.awaitReader()
	r := &c.ready
	r.conn, r.pool, r.size = c, pool, size
	closed := r.raw.Read(r.try)
	for closed == nil && r.needsTurn {
		r.needsTurn, r.hasTurn = false, c.takeTurn(true)
		closed = r.raw.Read(r.try)
	}
	buffer, n, err := r.buffer, r.n, r.err
	r.pool, r.buffer, r.n, r.err, r.needsTurn, r.hasTurn = nil, nil, 0, nil, false, false
	switch {
	case closed != nil:
		c.endTurn()
		return nil, 0, closed
	case err != nil:
		return nil, 0, fmt.Errorf("read from the connection: %w", err)
	case buffer == nil:
		return nil, 0, io.EOF
	}
	return buffer, n, nil
}
