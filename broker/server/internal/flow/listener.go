// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"net"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// Listener accepts the connections of one caller, as its share and a rate allow.
type Listener struct {
	*unixsocket.Listener
	from *Caller
	// next is when the next connection may be accepted, but for acceptBurst of them.
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
		<-time.After(early) // acceptTime at most
	}
	l.next = l.next.Add(acceptTime)
}

// Accept implements net.Listener; its connections know their caller. One beyond the
// limit is closed, so that its client tries again later.
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
		_ = conn.Close() // its client gets the error
	}
}
