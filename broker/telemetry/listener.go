// SPDX-License-Identifier: Apache-2.0

package telemetry

import "net"

// portListener accepts connections at once, even while the server is busy, and gives the server
// the connections that the port admits. So the system's queue of connections stays short even if
// very many clients connect, and a probe does not wait in it.
type portListener struct {
	net.Listener
	port *Port
	// more has a value if the port has admitted a connection since the server last asked.
	more   chan struct{}
	failed chan error
	ended  chan struct{} // closed when the server accepts no more connections
}

// Serve answers on the listener until it is closed.
func (p *Port) Serve(listener net.Listener) error {
	l := &portListener{listener, p, make(chan struct{}, 1), make(chan error), make(chan struct{})}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		l.accept()
	}()
	err := p.Server.Serve(l) // closes the listener when it returns
	close(l.ended)
	<-accepted
	for conn, found := p.next(); found; conn, found = p.next() {
		drop(conn)
	}
	return err
}

// accept admits connections until the server ends.
func (l *portListener) accept() {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err != nil:
			select {
			case l.failed <- err: // the server tries again later if the error is temporary
			case <-l.ended:
				return
			}
		case l.port.admit(conn):
			select {
			case l.more <- struct{}{}:
			default: // more has a value already
			}
		default:
			drop(conn)
		}
	}
}

// Accept implements net.Listener.
func (l *portListener) Accept() (net.Conn, error) {
	for {
		if conn, found := l.port.next(); found {
			return conn, nil
		}
		select {
		case <-l.more:
		case err := <-l.failed:
			return nil, err
		}
	}
}
