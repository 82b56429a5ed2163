// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// MaxStatusConnections is how many connections the status port has at one time.
const MaxStatusConnections = 64

// Port is the HTTP server of the status port. It has MaxStatusConnections at most.
// Where one more comes, the one that has been quiet longest is closed, so that
// whoever keeps connections open for nothing does not keep a kubelet's probe out.
type Port struct {
	*http.Server
	mu   sync.Mutex
	open map[net.Conn]quiet
}

// quiet is since when a connection has been in its state.
type quiet struct {
	since time.Time
	// busy is set while a request is read or answered.
	busy bool
}

func newPort(server *http.Server) *Port {
	p := &Port{Server: server, open: map[net.Conn]quiet{}}
	server.ConnState = p.changed
	return p
}

// Serve answers on the listener until it is closed.
func (p *Port) Serve(listener net.Listener) error {
	return p.Server.Serve(&portListener{listener, p})
}

// changed follows the state of the connections.
func (p *Port) changed(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch _, open := p.open[conn]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(p.open, conn)
	case open: // else it has been closed for another
		p.open[conn] = quiet{time.Now(), state == http.StateActive}
	}
}

// add makes room for a connection.
func (p *Port) add(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) >= MaxStatusConnections {
		longest := p.longest()
		delete(p.open, longest)
		_ = longest.Close() // nobody waits for what it would have said
	}
	p.open[conn] = quiet{since: time.Now()}
}

// longest is the connection that has been quiet longest, one that is busy only
// where all are.
func (p *Port) longest() (longest net.Conn) {
	var least quiet
	for conn, q := range p.open {
		if longest == nil || least.busy && !q.busy || least.busy == q.busy && q.since.Before(least.since) {
			longest, least = conn, q
		}
	}
	return longest
}

// portListener tells the port of each connection before it is served.
type portListener struct {
	net.Listener
	port *Port
}

// Accept implements net.Listener.
func (l *portListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.port.add(conn)
	}
	return conn, err
}
