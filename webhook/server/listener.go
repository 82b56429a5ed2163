// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
)

// listener returns connections after their TLS handshake, as the shares of their
// clients allow.
type listener struct {
	net.Listener
	config                  *tls.Config
	connections, handshakes *shares.Shares
	accepted                chan net.Conn
	// failed is the error that ended accepting connections. closed is closed once failed is set.
	failed error
	closed chan struct{}
}

// share accepts connections until the listener is closed.
func share(from net.Listener, config *tls.Config) net.Listener {
	l := &listener{
		Listener:    from,
		config:      config,
		connections: shares.New(maxConnections),
		handshakes:  shares.New(maxHandshakes),
		accepted:    make(chan net.Conn),
		closed:      make(chan struct{}),
	}
	go l.accept()
	return l
}

// Accept returns the next connection after its handshake.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case connection := <-l.accepted:
		return connection, nil
	case <-l.closed:
		return nil, l.failed
	}
}

func (l *listener) accept() {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			if passing, ok := err.(interface{ Temporary() bool }); ok && passing.Temporary() {
				<-time.After(5 * time.Millisecond) // too many open files, for example
				continue
			}
			l.failed = err
			close(l.closed)
			return
		}
		client := shares.Holder{Client: ClientOf(connection.RemoteAddr().String())}
		if !l.connections.Try(client, 1) {
			refusedConnections.WithLabelValues(reasonShare).Inc()
			_ = connection.Close() // nothing was sent that could be lost
			continue
		}
		held := &heldConnection{Conn: connection, release: sync.OnceFunc(func() { l.connections.Release(client, 1) })}
		go l.greet(client, held)
	}
}

// greet does the TLS handshake of a connection and passes it to Accept once its first
// request begins, or closes it.
//
// An API server may open a connection and keep it for a later request. net/http would close it
// after headerTimeout, and a request that arrives at that moment would fail.
func (l *listener) greet(client shares.Holder, connection net.Conn) {
	secured := tls.Server(connection, l.config)
	if err := l.handshake(client, secured); err != nil {
		refusedConnections.WithLabelValues(reasonHandshake).Inc()
		_ = connection.Close() // it has failed already
		return
	}
	begun, err := l.awaitRequest(secured)
	if err != nil {
		_ = secured.Close() // the client made no request
		return
	}
	select {
	case l.accepted <- begun:
	case <-l.closed:
		_ = secured.Close() // no goroutine reads from it any more
	}
}

// awaitRequest waits for idleTimeout, or until the listener is closed, for the first byte of
// a connection, and returns the connection with that byte.
func (l *listener) awaitRequest(connection net.Conn) (net.Conn, error) {
	waited := make(chan struct{})
	defer close(waited)
	go func() {
		select {
		case <-l.closed:
			_ = connection.Close()
		case <-waited:
		}
	}()
	if err := connection.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return nil, err
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(connection, first); err != nil {
		return nil, err
	}
	return &begunConnection{Conn: connection, first: first}, connection.SetReadDeadline(time.Time{})
}

// begunConnection is a connection whose first byte was read already.
type begunConnection struct {
	net.Conn
	first []byte // nil once it was given to net/http
}

// Read returns the first byte, and then what the connection has.
func (c *begunConnection) Read(into []byte) (int, error) {
	if c.first == nil || len(into) == 0 {
		return c.Conn.Read(into)
	}
	into[0], c.first = c.first[0], nil
	return 1, nil
}

func (l *listener) handshake(client shares.Holder, connection *tls.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := l.handshakes.Acquire(ctx, client, 1); err != nil {
		return err
	}
	defer l.handshakes.Release(client, 1)
	return connection.HandshakeContext(ctx)
}

// heldConnection is a connection that counts for its client until it is closed.
type heldConnection struct {
	net.Conn
	release func()
}

// Close closes the connection and releases its part of the client's share.
func (c *heldConnection) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// ClientOf returns the IP address of an address with a port.
func ClientOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
