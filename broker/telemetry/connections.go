// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The maximum numbers of connections of the status port at one time.
const (
	// MaxStatusConnections is the limit of all connections.
	MaxStatusConnections = 64
	// maxOwnConnections is the limit of all connections from the broker's own machine or
	// pod. It leaves room for the kubelet and the operator: a container can use each of the
	// 16 million loopback addresses, and each address of its pod.
	maxOwnConnections = 32
	// MaxAddressConnections is the limit of the connections from one remote address.
	MaxAddressConnections = 16
)

// Port is the HTTP server of the status port. If a connection would exceed a limit, the port
// closes the connection under that limit that has been idle for the longest time. So a client
// that opens many idle connections loses its own connections, and a kubelet's probe is answered.
type Port struct {
	*http.Server
	crowded func() // see Status
	mu      sync.Mutex
	open    map[net.Conn]connection
	// waiting are the connections of open that the server has not begun to serve, in their
	// order.
	waiting []net.Conn
}

// connection is the state of a connection.
type connection struct {
	peer
	// since is when the connection got its present state.
	since time.Time
	// answering reports whether the server has read a request and has not written its answer. The
	// timeouts of the server bound that time.
	answering bool
}

func newPort(crowded func(), server *http.Server) *Port {
	if crowded == nil {
		crowded = func() {}
	}
	p := &Port{Server: server, crowded: crowded, open: map[net.Conn]connection{}}
	server.ConnState = p.changed
	return p
}

// changed records the new state of a connection. It implements [http.Server.ConnState].
func (p *Port) changed(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch found, open := p.open[conn]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(p.open, conn)
	case open: // otherwise another connection has replaced it
		// The server calls a connection active once it has read the whole header.
		p.open[conn] = connection{found.peer, time.Now(), state == http.StateActive}
	}
}

// admit adds a connection and reports true. If a limit is reached, it closes the connection
// that has been idle for the longest time. It reports false, and adds nothing, if none is
// idle.
func (p *Port) admit(conn net.Conn) bool {
	peer := peerOf(conn)
	p.mu.Lock()
	quietest, full := longestQuiet(p.open, peer)
	admitted := !full || quietest != nil
	if admitted {
		p.remove(quietest)
		p.open[conn] = connection{peer: peer, since: time.Now()}
		p.waiting = append(p.waiting, conn)
	}
	crowd := len(p.open) > quietConnections
	p.mu.Unlock()
	if crowd {
		p.crowded()
	}
	if quietest != nil {
		drop(quietest)
	}
	return admitted
}

// remove removes a connection from the maps of the port.
func (p *Port) remove(conn net.Conn) {
	delete(p.open, conn)
	if i := slices.Index(p.waiting, conn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// next removes the connection that has waited longest to be served, and returns it.
func (p *Port) next() (conn net.Conn, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return nil, false
	}
	conn = p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	return conn, true
}

// drop closes a connection. The system discards unread data at once.
func drop(conn net.Conn) {
	if lingering, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = lingering.SetLinger(0) // this fails only if the connection has ended
	}
	_ = conn.Close() // nobody waits for an answer
}
