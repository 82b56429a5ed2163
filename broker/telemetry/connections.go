// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// How many connections the status port has at one time.
const (
	// MaxStatusConnections are those of all.
	MaxStatusConnections = 64
	// MaxOwnConnections are those of the broker's own machine or pod. They leave room
	// for the kubelet and the operator: a container can use all loopback addresses,
	// which are 16 million, and each address of its pod.
	MaxOwnConnections = 32
	// MaxAddressConnections are those of one remote address.
	MaxAddressConnections = 16
)

// Port is the HTTP server of the status port. Where a connection comes that is one
// more than a limit allows, the one that has been quiet longest among those of the
// same limit is closed. So whoever opens connections for nothing closes its own, and
// does not keep a kubelet's probe out.
type Port struct {
	*http.Server
	crowded func() // see Status
	mu      sync.Mutex
	open    map[net.Conn]connection
	// waiting are those of open that the server has not begun to serve, in their order.
	waiting []net.Conn
}

// connection is what the port knows of one.
type connection struct {
	peer
	// since is when it got into its state.
	since time.Time
	// answering is set from when a request has been read until its answer is written,
	// which the timeouts of the server bound.
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

// changed follows the state of the connections.
func (p *Port) changed(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch found, open := p.open[conn]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(p.open, conn)
	case open: // else it has been closed for another
		// The server calls a connection active once it has read the whole header.
		p.open[conn] = connection{found.peer, time.Now(), state == http.StateActive}
	}
}

// admit makes room for a connection, and reports whether there is some.
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

// remove forgets a connection.
func (p *Port) remove(conn net.Conn) {
	delete(p.open, conn)
	if i := slices.Index(p.waiting, conn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// next takes the connection that has been waiting longest to be served, if there is one.
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

// drop closes a connection and lets the system forget at once what its client has
// not read.
func drop(conn net.Conn) {
	if lingering, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = lingering.SetLinger(0) // it has ended by itself where that fails
	}
	_ = conn.Close() // nobody waits for what it would have said
}
