// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// damagedConn is a connection with a damaged peer: the connection is cut at a byte, or one bit of a byte is flipped.
type damagedConn struct {
	net.Conn
	seen, at int
	flip     byte // 0 to cut the connection
	done     bool // whether the damage has happened
}

func (c *damagedConn) Read(b []byte) (int, error) {
	if c.flip == 0 && c.seen >= c.at {
		c.done = true
		return 0, io.EOF
	}
	if c.flip == 0 {
		b = b[:min(len(b), c.at-c.seen)]
	}
	n, err := c.Conn.Read(b)
	if c.flip != 0 && c.at >= c.seen && c.at < c.seen+n {
		b[c.at-c.seen] ^= c.flip
		c.done = true
		// A length field that became larger makes the client wait for data that never comes.
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	}
	c.seen += n
	return n, err
}

// countedConn counts what was read.
type countedConn struct {
	net.Conn
	count atomic.Int64
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.count.Add(int64(n))
	return n, err
}

// places returns the interesting bytes of a handshake of the length: the first ones, except the
// version of the first record, which has to be ignored (RFC 8446, section 5.1), the last ones, and some
// between them, or all of them with EVERY_BYTE=true.
func places(length int) []int {
	var list []int
	step := 37
	switch {
	case os.Getenv("EVERY_BYTE") != "":
		step = 1
	case testing.Short():
		step = 370
	}
	for at := range length {
		if at != 1 && at != 2 && (at < 16 || at%step == 0 || at >= length-16) {
			list = append(list, at)
		}
	}
	return list
}

func TestAPeerThatMisbehavesAtAnyByteIsAnErrorAndNothingHangs(t *testing.T) {
	authority := newAuthority(t)
	server := authority.serverConfig(t)
	server.SessionTicketsDisabled = true
	address := serve(t, server, func(conn *tls.Conn) {
		if _, err := conn.Write([]byte("hello")); err == nil {
			hold(conn)
		}
	})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem, MaxVersion: version}, func(t *testing.T, p provider) {
				counted := &countedConn{}
				if err := readHello(t, p, address, func(raw net.Conn) net.Conn {
					counted.Conn = raw
					return counted
				}); err != nil {
					t.Fatal(err)
				}
				for _, at := range places(int(counted.count.Load())) {
					for _, flip := range []byte{0, 0x01, 0x80} {
						var damaged *damagedConn
						err := readHello(t, p, address, func(raw net.Conn) net.Conn {
							damaged = &damagedConn{Conn: raw, at: at, flip: flip}
							return damaged
						})
						// Signatures have different lengths, so this handshake may have ended before.
						if err == nil && damaged.done {
							t.Errorf("byte %d, bit %#x: nothing was noticed", at, flip)
						}
					}
				}
			})
		})
	}
}

// readHello reads the greeting of the server over a connection that wrap changes.
func readHello(t *testing.T, p provider, address string, wrap func(net.Conn) net.Conn) error {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := p.connect(wrap(raw), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != "hello" {
		t.Errorf("the data %q was accepted", got)
	}
	return nil
}
