// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds how many connections a server of HTTP has. If there is one too many, it closes the connection that has had
// no request for the longest time. So strangers cannot fill the memory with connections, and slow clients lose theirs first.
package connlimit

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Limit has the connections of a server. A connection counts as having no request until all headers have arrived. It is safe for
// concurrent use.
type Limit struct {
	most int
	mu   sync.Mutex
	open map[net.Conn]state
}

// state is the state of a connection.
type state struct {
	http.ConnState
	since time.Time
}

// New returns a limit of most connections at one time. Its [Limit.Changed] has to be the ConnState of the server.
func New(most int) *Limit { return &Limit{most: most, open: map[net.Conn]state{}} }

// SetMost changes the limit. Connections that are open stay.
func (l *Limit) SetMost(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
}

// Listener returns a listener that closes connections beyond the limit.
func (l *Limit) Listener(inner net.Listener) net.Listener { return &listener{inner, l} }

// Count returns how many connections there are.
func (l *Limit) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// admit adds a connection. It reports false if there are too many connections and all of them
// have requests.
func (l *Limit) admit(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		var quiet net.Conn
		for other, s := range l.open {
			if s.ConnState != http.StateActive && (quiet == nil || s.since.Before(l.open[quiet].since)) {
				quiet = other
			}
		}
		if quiet == nil {
			return false
		}
		delete(l.open, quiet)
		_ = quiet.Close() // the client may have closed it
	}
	l.open[conn] = state{http.StateNew, time.Now()}
	return true
}

// Changed implements [http.Server.ConnState].
func (l *Limit) Changed(conn net.Conn, now http.ConnState) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok { // of TLS
		conn = secure.NetConn()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now == http.StateClosed {
		delete(l.open, conn)
	} else if _, open := l.open[conn]; open && now != http.StateNew {
		l.open[conn] = state{now, time.Now()}
	}
}

// CloseUnused closes the connections that have had no request yet. [http.Server.Shutdown] would
// wait for them.
func (l *Limit) CloseUnused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn, s := range l.open {
		if s.ConnState == http.StateNew {
			delete(l.open, conn)
			_ = conn.Close() // the client may have closed it
		}
	}
}

type listener struct {
	net.Listener
	limit *Limit
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.limit.admit(conn) {
			return conn, nil
		}
		_ = conn.Close() // no byte of the client was read yet
	}
}
