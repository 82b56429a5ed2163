// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// connections are the connections of clients. If there are more than the limit, the connection
// that has had no request for the longest time is closed. A connection counts as having no
// request until all headers have arrived. So slow clients lose their connections first.
type connections struct {
	most int
	mu   sync.Mutex
	open map[net.Conn]connState
}

// connState is the state of a connection.
type connState struct {
	http.ConnState
	since time.Time
}

// admit adds a connection. It reports false if there are too many connections and all of them
// have requests.
func (c *connections) admit(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		var quiet net.Conn
		for other, state := range c.open {
			if state.ConnState != http.StateActive && (quiet == nil || state.since.Before(c.open[quiet].since)) {
				quiet = other
			}
		}
		if quiet == nil {
			return false
		}
		delete(c.open, quiet)
		_ = quiet.Close() // the client may have closed it
	}
	if c.open == nil {
		c.open = map[net.Conn]connState{}
	}
	c.open[conn] = connState{http.StateNew, time.Now()}
	return true
}

// changed implements [http.Server.ConnState].
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed {
		delete(c.open, conn)
	} else if _, open := c.open[conn]; open && state != http.StateNew {
		c.open[conn] = connState{state, time.Now()}
	}
}

// closeUnused closes the connections that have had no request yet. [http.Server.Shutdown] would
// wait for them.
func (c *connections) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, state := range c.open {
		if state.ConnState == http.StateNew {
			delete(c.open, conn)
			_ = conn.Close() // the client may have closed it
		}
	}
}

// sendBuffer is the number of bytes that the system buffers and that a client has not read. Linux
// doubles the number for its own needs, and counts the buffer as memory of the broker.
const sendBuffer = 32 << 10

// admitting is a listener that closes connections beyond the limit.
type admitting struct {
	net.Listener
	conns *connections
}

// Accept implements net.Listener.
func (a *admitting) Accept() (net.Conn, error) {
	for {
		conn, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a.conns.admit(conn) {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetWriteBuffer(sendBuffer) // it fails only if the connection has ended
			}
			return conn, nil
		}
		_ = conn.Close() // no byte of the client was read yet
	}
}
