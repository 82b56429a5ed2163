// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The most plaintext of a record (RFC 8446, section 5.1), and a buffer that holds one encrypted.
const (
	recordLimit = 16 << 10
	bufferSize  = recordLimit + 512
	// The buffer that a connection has while it waits for the peer.
	inputSize = 4 << 10
)

// A peer may send this much without data. OpenSSL bounds each message of a handshake, the largest ones to 100 KiB.
// After the handshake, tickets and updates of keys are no data.
const barrenLimit = 512 << 10

// OpenSSL may have this much for a peer that asks for answers and does not read them.
const answersLimit = 64 << 10

// alertTime is how long the last record of a connection may take to be sent.
const alertTime = 5 * time.Second

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Conn is a TLS connection of a client. Its methods may be called by several goroutines at once.
// Close makes methods that wait return [net.ErrClosed].
//
// After a Write has timed out or failed, a part of a record may be on its way. All later writes
// return the same error.
type Conn struct {
	raw  net.Conn
	ssl  *ssl
	name string
	keep func(*Conn) // keeps the session of the connection for resumption; may be nil

	handshakeMutex sync.Mutex
	handshakeDone  atomic.Bool
	handshakeError error
	state          tls.ConnectionState

	readMutex sync.Mutex // one Read at a time
	readError error
	hungry    bool // OpenSSL has nothing that was not read
	input     []byte
	busy      bool // the peer may have sent more than the last receive has read
	barren    int  // how much the peer has sent since its last data
	kept      bool

	writeMutex sync.Mutex // one Write at a time
	sendMutex  sync.Mutex // guards the order of records: they go to the peer in the order in which OpenSSL made them
	writeError error      // guarded by sendMutex
	shut       bool       // close_notify was made; guarded by sendMutex
	closed     atomic.Bool
}

func newConn(raw net.Conn, s *ssl, name string, keep func(*Conn)) *Conn {
	c := &Conn{raw: raw, ssl: s, name: name, keep: keep}
	// A connection that nobody closed is closed by the finalizer of its socket. This cleanup frees the memory in OpenSSL.
	runtime.AddCleanup(c, (*ssl).free, s)
	return c
}

// Handshake runs the handshake if it was not run yet. The first Read or Write does it otherwise.
func (c *Conn) Handshake() error { return c.HandshakeContext(context.Background()) }

// HandshakeContext is [Conn.Handshake] with a context. If the context ends before the handshake, the
// connection is closed, and the error is the error of the context. The context has no effect afterwards.
func (c *Conn) HandshakeContext(ctx context.Context) error {
	if c.handshakeDone.Load() {
		return nil
	}
	// Another handshake may hold the mutex, so this comes first.
	stop := context.AfterFunc(ctx, func() { _ = c.raw.Close() })
	c.handshakeMutex.Lock()
	defer c.handshakeMutex.Unlock()
	if c.handshakeError == nil && !c.handshakeDone.Load() {
		c.handshakeError = c.runHandshake()
	}
	if !stop() && ctx.Err() != nil {
		// The connection is closed, even if the handshake ended just before.
		c.handshakeError = fmt.Errorf("openssl: handshake with %s: %w", c.name, ctx.Err())
		return c.handshakeError
	}
	if c.handshakeError == nil {
		c.handshakeDone.Store(true)
	}
	return c.handshakeError
}

func (c *Conn) runHandshake() error {
	operation := "handshake with " + c.name
	defer c.ssl.lib.handshakes.begin()()
	for {
		ended, err := c.ssl.handshake(operation)
		// An alert for the peer is sent even if the handshake failed.
		if sendError := c.send(); err == nil && sendError != nil {
			err = fmt.Errorf("openssl: %s: %w", operation, sendError)
		}
		if err != nil {
			return err
		}
		if ended == stepDone {
			c.state, err = c.ssl.state(c.name)
			return err
		}
		if err := c.receive(); err != nil {
			if errors.Is(err, ErrTruncated) {
				err = fmt.Errorf("the peer closed the connection: %w", io.ErrUnexpectedEOF)
			}
			return fmt.Errorf("openssl: %s: %w", operation, err)
		}
	}
}

// receive waits for ciphertext of the peer.
func (c *Conn) receive() error {
	if c.input == nil {
		c.input = make([]byte, inputSize)
	}
	buffer := c.input
	if c.busy {
		large := buffers.Get().(*[bufferSize]byte)
		defer buffers.Put(large)
		buffer = large[:]
	}
	n, err := c.raw.Read(buffer)
	c.busy = n == len(buffer)
	if c.barren += n; c.barren > barrenLimit {
		return errBarren
	}
	if n > 0 {
		return c.ssl.feed(buffer[:n])
	}
	if errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	return err
}

// send sends all ciphertext that OpenSSL has made. If another goroutine is sending, that one does it.
func (c *Conn) send() error {
	for c.sendMutex.TryLock() {
		err := c.sendLocked()
		c.sendMutex.Unlock()
		// Another goroutine that found the mutex locked may have left something here.
		if err != nil || !c.ssl.hasOutput() {
			return err
		}
	}
	return nil
}

func (c *Conn) sendLocked() error {
	if c.writeError != nil {
		return c.writeError
	}
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n := c.ssl.drain(buffer[:])
		if n == 0 {
			return nil
		}
		if _, err := c.raw.Write(buffer[:n]); err != nil {
			c.writeError = err
			return err
		}
		if n < len(buffer) {
			return nil
		}
	}
}

// Read reads at most one record. It returns io.EOF after the peer's close_notify, and ErrTruncated if
// the connection ended without one.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, nil
	}
	c.readMutex.Lock()
	defer c.readMutex.Unlock()
	for c.readError == nil {
		if c.hungry {
			if err := c.receive(); err != nil {
				return 0, c.keepReadError(err)
			}
			c.hungry = false
		}
		n, ended, err := c.ssl.read(b)
		if (err != nil || ended != stepDone) && c.ssl.hasOutput() {
			// After an error, it is an alert.
			if answerError := c.answer(err != nil); err == nil {
				err = answerError
			}
		}
		switch {
		case err != nil:
			return 0, c.keepReadError(err)
		case ended == stepEnded:
			c.readError = io.EOF
		case ended == stepHungry:
			c.hungry = true
		default:
			c.hungry, c.barren = ended == stepLast, 0
			if !c.kept && c.keep != nil {
				c.kept = true
				c.keep(c)
			}
			return n, nil
		}
	}
	return 0, c.readError
}

// answer sends what reading has made for the peer, such as an update of keys. Only the last answer is waited for, so that
// a peer that does not read does not stop Read. Errors of sending are kept in writeError. What the peer has sent can be
// read nevertheless.
func (c *Conn) answer(last bool) error {
	if !c.sendMutex.TryLock() {
		// The goroutine that has it sends the answer, too, as soon as the peer reads.
		if c.ssl.outputSize() > answersLimit {
			return errAnswers
		}
		return nil
	}
	send := func() {
		_ = c.sendLocked()
		c.sendMutex.Unlock()
		c.sendAgain()
	}
	if !last {
		go send()
		return nil
	}
	// This fails only if the connection is closed. Then sending fails as well.
	_ = c.raw.SetWriteDeadline(time.Now().Add(alertTime))
	send()
	return nil
}

// keepReadError keeps an error for later reads unless it is a deadline, after which reading goes on.
func (c *Conn) keepReadError(err error) error {
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		c.readError = err
	}
	return err
}

// Write encrypts and sends all of b, in records of up to 16 KiB.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	c.writeMutex.Lock()
	defer c.writeMutex.Unlock()
	written := 0
	for written < len(b) {
		n, err := c.writeRecord(b[written:min(len(b), written+recordLimit)])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (c *Conn) writeRecord(b []byte) (int, error) {
	c.sendMutex.Lock()
	defer c.sendAgain()
	defer c.sendMutex.Unlock()
	if c.writeError != nil {
		return 0, c.writeError
	}
	if c.shut {
		return 0, errShutdown
	}
	n, ended, err := c.ssl.write(b)
	if err == nil && ended != stepDone {
		// Only a renegotiation makes a write wait for the peer, and renegotiation is off.
		err = fmt.Errorf("openssl: write: found the status %d, expected that OpenSSL encrypts", ended)
	}
	if sendError := c.sendLocked(); err == nil && sendError != nil {
		n, err = 0, sendError
	}
	if err != nil {
		c.writeError = err
	}
	return n, err
}

// sendAgain sends what another goroutine left while this one had sendMutex. Its errors are kept in
// writeError.
func (c *Conn) sendAgain() {
	if c.ssl.hasOutput() {
		_ = c.send()
	}
}

// CloseWrite sends close_notify. Reading goes on; later writes are an error. It is an error before the
// handshake.
func (c *Conn) CloseWrite() error {
	if !c.handshakeDone.Load() {
		return errors.New("openssl: CloseWrite before the handshake")
	}
	c.sendMutex.Lock()
	defer c.sendAgain()
	defer c.sendMutex.Unlock()
	if c.writeError != nil {
		return c.writeError
	}
	if !c.shut {
		c.shut = true
		c.ssl.shutdown()
	}
	return c.sendLocked()
}

// Close sends close_notify, unless a Write is waiting for the peer, and closes the connection. It
// waits at most 5 seconds for a peer that does not read.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if c.handshakeDone.Load() && c.sendMutex.TryLock() {
		if c.writeError == nil {
			if !c.shut {
				c.ssl.shutdown()
			}
			if c.raw.SetWriteDeadline(time.Now().Add(alertTime)) == nil {
				// The connection is closed whether the peer got it or not.
				_ = c.sendLocked()
			}
			c.writeError = net.ErrClosed
		}
		c.sendMutex.Unlock()
	}
	err := c.raw.Close()
	if c.handshakeDone.Load() && c.keep != nil {
		c.keep(c)
	}
	c.ssl.free()
	return err
}

// ConnectionState returns what the handshake agreed on. Before the handshake it is empty. Of its fields
// it has the version, the cipher suite, the protocol, the name of the server, the certificates of the
// peer, the chain that OpenSSL verified, and whether a session was resumed.
func (c *Conn) ConnectionState() tls.ConnectionState {
	if !c.handshakeDone.Load() {
		return tls.ConnectionState{}
	}
	return c.state
}

// NetConn returns the connection that carries the ciphertext. Anybody who reads or writes it breaks the
// TLS connection.
func (c *Conn) NetConn() net.Conn { return c.raw }

// LocalAddr returns the local address.
func (c *Conn) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// SetDeadline sets when reads, writes and the handshake end with a timeout.
func (c *Conn) SetDeadline(t time.Time) error { return c.raw.SetDeadline(t) }

// SetReadDeadline sets when reads end with a timeout. Reading may go on with a later deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.raw.SetReadDeadline(t) }

// SetWriteDeadline sets when writes end with a timeout, after which nothing can be written.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.raw.SetWriteDeadline(t) }
