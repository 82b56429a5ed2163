// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"net"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// Listener accepts the connections of one caller. The share of the caller limits their
// number, and acceptBurst and acceptTime limit their rate.
type Listener struct {
	*unixsocket.Listener
	from *Caller
	// next is when the listener may accept the next connection. Up to acceptBurst
	// connections may come before that time.
	next time.Time
}

// NewListener returns a listener that accepts the connections of a caller on its socket.
func NewListener(on *unixsocket.Listener, from *Caller) *Listener {
	return &Listener{Listener: on, from: from}
}

// A caller may open acceptBurst connections at once, and one each acceptTime. A connection
// takes some hundred microseconds of processor time, which others need as well.
const (
	acceptBurst = 256
	acceptTime  = time.Millisecond
)

// throttle waits until the next connection may be accepted.
func (l *Listener) throttle(now time.Time) {
	if earliest := now.Add(-acceptBurst * acceptTime); l.next.Before(earliest) {
		l.next = earliest
	}
	if early := l.next.Sub(now); early > 0 {
		<-time.After(early) // at most acceptTime
	}
	l.next = l.next.Add(acceptTime)
}

// Accept implements net.Listener. Its connections are of type [*Conn]. It closes a
// connection beyond the limit of the caller, so that its client tries again later.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		l.throttle(time.Now())
		made := newConn(conn, l.from, l.Identity())
		if err := conn.SetWriteBuffer(sendBuffer); err == nil && l.from.admit(made) {
			return made, nil
		}
		_ = conn.Close() // the client sees the end of the connection
	}
}
