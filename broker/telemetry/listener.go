// SPDX-License-Identifier: Apache-2.0

package telemetry

import "net"

// portListener accepts connections as they come, whatever the server is doing, and
// gives it those that the port admits. So where very many come at once, the system's
// queue stays short, in which a probe would wait behind them, and most are closed
// before anything has begun to serve them.
type portListener struct {
	net.Listener
	port *Port
	// more has a value where a connection was admitted since the server asked.
	more   chan struct{}
	failed chan error
	ended  chan struct{} // closed once the server takes no more
}

// Serve answers on the listener until it is closed.
func (p *Port) Serve(listener net.Listener) error {
	l := &portListener{listener, p, make(chan struct{}, 1), make(chan error), make(chan struct{})}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		l.accept()
	}()
	err := p.Server.Serve(l) // which closes the listener at its end
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
			case l.failed <- err: // the server waits a moment where that may pass
			case <-l.ended:
				return
			}
		case l.port.admit(conn):
			select {
			case l.more <- struct{}{}:
			default: // the server has not looked since the last
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
