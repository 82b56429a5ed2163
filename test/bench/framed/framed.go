// SPDX-License-Identifier: Apache-2.0

// Package framed carries operations over a Unix socket in a minimal protocol: a kind, a
// length, and the bytes. It uses neither HTTP/2 nor gRPC, and protobuf for certificates only.
//
// Serve serves one call at a time on each connection. It shows the cost of a socket and a
// goroutine for each caller. ServeMultiplexed serves the calls of all callers on one
// connection: requests have ids, and both sides write all waiting messages in one system
// call. It is the fastest way for small calls that we know. So the benchmark compares the broker with it as the upper bound.
package framed

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// The kinds of messages. The request for a digest is the input, the reply the digest.
// The request for an encryption is the key, the nonce and the plaintext, the reply the
// ciphertext and the tag. Certificates have the messages of
// cryptobroker.v1.CryptoService.
const (
	digestDefault byte = iota + 1
	digestSHA256
	certificate
	encryption
	failed // a reply: the text of an error
)

// headerSize is the size of a message's header in bytes: its kind and its length.
const headerSize = 5

// Sizes of what a request for an encryption begins with.
const (
	keySize   = 32
	nonceSize = 12
)

// maxSize is larger than any message here, in bytes.
const maxSize = 2 << 20

// bufferSize is the number of bytes that the broker's own server reads at once.
const bufferSize = 32 << 10

// connection is one end of a socket. It reuses its buffers for each message.
type connection struct {
	net.Conn
	reader  *bufio.Reader
	in, out []byte
}

func newConnection(conn net.Conn) *connection {
	return &connection{Conn: conn, reader: bufio.NewReaderSize(conn, bufferSize)}
}

// receive returns a message, which is valid until the next one.
func (c *connection) receive() (kind byte, body []byte, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(c.reader, header[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > maxSize {
		return 0, nil, fmt.Errorf("a message of %d bytes, expected at most %d", size, maxSize)
	}
	if cap(c.in) < int(size) {
		c.in = make([]byte, size)
	}
	c.in = c.in[:size]
	_, err = io.ReadFull(c.reader, c.in)
	return header[0], c.in, err
}

// send sends a message: header and body by one system call.
func (c *connection) send(kind byte, body []byte) error {
	header := [headerSize]byte{kind}
	binary.BigEndian.PutUint32(header[1:], uint32(len(body)))
	if len(body) > bufferSize {
		_, err := (&net.Buffers{header[:], body}).WriteTo(c.Conn)
		return err
	}
	c.out = append(append(c.out[:0], header[:]...), body...)
	_, err := c.Write(c.out)
	return err
}

// Serve serves connections until the listener is closed.
func Serve(listener net.Listener, service *operations.Operations) error {
	return accept(listener, func(conn net.Conn) { serve(newConnection(conn), service) })
}

// accept serves each connection in a goroutine until the listener is closed.
func accept(listener net.Listener, serve func(net.Conn)) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			serve(conn)
			_ = conn.Close() // the client has closed it, or violates the protocol
		}()
	}
}

// serve answers until the client closes the connection or violates the protocol.
func serve(c *connection, service *operations.Operations) {
	for {
		kind, request, err := c.receive()
		if err != nil {
			return
		}
		reply, err := answer(service, kind, request)
		if err != nil {
			kind, reply = failed, []byte(err.Error())
		}
		if c.send(kind, reply) != nil {
			return
		}
	}
}

func answer(service *operations.Operations, kind byte, request []byte) (reply []byte, err error) {
	switch kind {
	case digestDefault, digestSHA256:
		profile := operations.Default
		if kind == digestSHA256 {
			profile = operations.SHA256
		}
		reply, _, err = service.Digest(make([]byte, 0, engine.MaxDigestSize), profile, request)
		return reply, err
	case certificate:
		var message v1.SignCertificateRequest
		if err := proto.Unmarshal(request, &message); err != nil {
			return nil, err
		}
		issued, err := service.SignCertificate(context.Background(), &message)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(issued)
	case encryption:
		if len(request) < keySize+nonceSize {
			return nil, fmt.Errorf("a request for an encryption has %d bytes, expected at least %d", len(request), keySize+nonceSize)
		}
		key, rest := request[:keySize], request[keySize:]
		sealed, _, err := service.Encrypt(operations.AESGCM, key, rest[:nonceSize], rest[nonceSize:])
		return append(sealed.Ciphertext, sealed.Tag...), err
	}
	return nil, fmt.Errorf("a message of the unknown kind %d", kind)
}
