// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// within runs a step that must not hang.
func within(t *testing.T, what string, step func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		step()
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatalf("%s: it did not end", what)
	}
}

func TestRecordsThatNoServerSendsEndARead(t *testing.T) {
	authority := newAuthority(t)
	once := func(forge func(*forger) []byte) func(*forger) {
		return func(f *forger) {
			_, _ = f.Write(forge(f))
			_, _ = io.Copy(io.Discard, f)
		}
	}
	flood := func(forge func(*forger) []byte) func(*forger) {
		return func(f *forger) {
			go func() { _, _ = io.Copy(io.Discard, f) }()
			f.flood(func() []byte { return forge(f) })
		}
	}
	both, old, current := []uint16{tls.VersionTLS12, tls.VersionTLS13}, []uint16{tls.VersionTLS12}, []uint16{tls.VersionTLS13}
	for name, test := range map[string]struct {
		versions  []uint16
		misbehave func(*forger)
	}{
		"empty records without end":         {both, flood(func(f *forger) []byte { return f.record(recordData, nil) })},
		"updates of keys without end":       {current, flood(func(f *forger) []byte { return f.update(0) })},
		"updates of both keys without end":  {current, flood(func(f *forger) []byte { return f.update(1) })},
		"tickets without end":               {current, flood(func(f *forger) []byte { return f.ticket(200) })},
		"large tickets without end":         {current, flood(func(f *forger) []byte { return f.ticket(16000) })},
		"renegotiations without end":        {old, flood(func(f *forger) []byte { return f.record(recordHandshake, handshakeMessage(messageHelloRequest)) })},
		"warnings without end":              {both, flood(func(f *forger) []byte { return f.record(recordAlert, []byte{1, 90}) })},
		"unknown alerts without end":        {both, flood(func(f *forger) []byte { return f.record(recordAlert, []byte{1, 200}) })},
		"changes of the cipher without end": {both, flood(func(*forger) []byte { return []byte{20, 3, 3, 0, 1, 1} })},
		"a message without an end": {both, flood(func(f *forger) []byte {
			return f.record(recordHandshake, []byte{messageTicket, 255, 255, 255, 0, 0, 0, 0})
		})},
		"parts of a ticket without end": {current, once(func(f *forger) []byte {
			records := f.record(recordHandshake, []byte{messageTicket, 0, 255, 255})
			for range 70_000 {
				records = append(records, f.record(recordHandshake, []byte{0})...)
			}
			return records
		})},
		"an update of keys with an unknown value": {current, once(func(f *forger) []byte { return f.update(7) })},
		"an update of keys that is too long":      {current, once(func(f *forger) []byte { return f.record(recordHandshake, handshakeMessage(messageUpdate, 0, 0)) })},
		"data behind an update of keys in a record": {current, once(func(f *forger) []byte {
			return f.record(recordHandshake, append(handshakeMessage(messageUpdate, 0), handshakeMessage(messageUpdate, 0)...))
		})},
		"a request for a certificate":        {current, once(func(f *forger) []byte { return f.record(recordHandshake, handshakeMessage(messageRequest, 0, 0, 0)) })},
		"a ticket cut off":                   {current, once(func(f *forger) []byte { return f.record(recordHandshake, handshakeMessage(messageTicket, 0, 0)) })},
		"a record of an unknown kind":        {both, once(func(f *forger) []byte { return f.record(99, []byte("hello")) })},
		"a record of zeros alone":            {current, once(func(f *forger) []byte { return f.record(0, make([]byte, 100)) })},
		"a record with one byte too many":    {both, once(func(f *forger) []byte { return f.record(recordData, make([]byte, 16<<10+1)) })},
		"a record with the largest length":   {both, once(func(*forger) []byte { return append([]byte{recordData, 3, 3, 255, 255}, make([]byte, 65535)...) })},
		"a record with the wrong key":        {both, once(func(*forger) []byte { return append([]byte{recordData, 3, 3, 0, 64}, make([]byte, 64)...) })},
		"a record twice":                     {both, once(func(f *forger) []byte { r := f.record(recordHandshake, nil); return append(r, r...) })},
		"a record without encryption":        {both, once(func(*forger) []byte { return []byte{recordData, 3, 3, 0, 5, 'h', 'e', 'l', 'l', 'o'} })},
		"an alert without encryption":        {both, once(func(*forger) []byte { return []byte{recordAlert, 3, 3, 0, 2, 1, 0} })},
		"a fatal alert":                      {both, once(func(f *forger) []byte { return f.record(recordAlert, []byte{2, 80}) })},
		"half an alert":                      {both, once(func(f *forger) []byte { return f.record(recordAlert, []byte{2}) })},
		"a hello of another handshake":       {both, once(func(f *forger) []byte { return f.record(recordHandshake, handshakeMessage(2, make([]byte, 40)...)) })},
		"a hello of SSL 2":                   {both, once(func(*forger) []byte { return []byte{0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 16} })},
		"a reply of HTTP without encryption": {both, once(func(*forger) []byte { return []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") })},
	} {
		for _, version := range test.versions {
			t.Run(name+", "+tls.VersionName(version), func(t *testing.T) {
				address := serveForger(t, authority, version, test.misbehave)
				withEachProvider(t, openssl.Config{RootCAs: authority.pem, MaxVersion: version}, func(t *testing.T, p provider) {
					conn := p.dial(t, address, "localhost")
					_ = conn.SetDeadline(time.Time{})
					within(t, "the read", func() {
						n, err := conn.Read(make([]byte, 100))
						if n > 0 || err == nil || errors.Is(err, io.EOF) {
							t.Errorf("read %d bytes: %v", n, err)
						}
					})
				})
			})
		}
	}
}

// The server asks for answers and reads nothing. Then crypto/tls waits for the peer until the write deadline.
func TestAReadEndsAlthoughThePeerReadsNoAnswers(t *testing.T) {
	authority := newAuthority(t)
	for version, forge := range map[uint16]func(*forger) []byte{
		tls.VersionTLS12: func(f *forger) []byte {
			return f.record(recordHandshake, bytes.Repeat(handshakeMessage(messageHelloRequest), 4000))
		},
		tls.VersionTLS13: func(f *forger) []byte { return f.update(1) },
	} {
		for _, writing := range []bool{false, true} {
			name := tls.VersionName(version)
			if writing {
				name += ", while a write waits for the peer"
			}
			t.Run(name, func(t *testing.T) {
				address := serveForger(t, authority, version, func(f *forger) {
					// The data keeps the client reading.
					f.flood(func() []byte { return append(forge(f), f.record(recordData, []byte("x"))...) })
				})
				raw, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				// What the system buffers is not what this test is about.
				if err := raw.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
					t.Fatal(err)
				}
				p := opensslProvider(t, openssl.Config{RootCAs: authority.pem, MaxVersion: version})
				conn, err := p.connect(raw, "localhost")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				if err := conn.HandshakeContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				var working sync.WaitGroup
				if writing {
					working.Go(func() {
						for err := error(nil); err == nil; {
							_, err = conn.Write(make([]byte, 1<<20))
						}
					})
				}
				within(t, "reading", func() {
					if _, err := io.Copy(io.Discard, conn); err == nil || !strings.Contains(err.Error(), "answers") {
						t.Errorf("reading ended with %v", err)
					}
				})
				within(t, "closing", func() {
					_ = conn.Close()
					working.Wait()
				})
			})
		}
	}
}

// Records that arrive before the keys are known. The client has only sent its first message.
func TestBytesThatAreNoHandshakeEndIt(t *testing.T) {
	authority := newAuthority(t)
	repeat := func(text string) func(net.Conn) {
		several := bytes.Repeat([]byte(text), 1+(16<<10)/max(1, len(text)))
		return func(conn net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			for {
				if _, err := conn.Write(several); err != nil {
					return
				}
			}
		}
	}
	once := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = io.WriteString(conn, text)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
		}
	}
	for name, misbehave := range map[string]func(net.Conn){
		"zeros without end":                     repeat("\x00"),
		"ones without end":                      repeat("\xff"),
		"text without end":                      repeat("hello\n"),
		"empty messages without end":            repeat("\x16\x03\x03\x00\x00"),
		"empty data without end":                repeat("\x17\x03\x03\x00\x00"),
		"warnings without end":                  repeat("\x15\x03\x03\x00\x02\x01\x70"),
		"changes of the cipher without end":     repeat("\x14\x03\x03\x00\x01\x01"),
		"requests for a hello without end":      repeat("\x16\x03\x03\x00\x04\x00\x00\x00\x00"),
		"the largest message without end":       repeat("\x16\x03\x03\x40\x00\x02\xff\xff\xff" + string(make([]byte, 1<<14-4))),
		"a hello with the largest length":       once("\x16\x03\x03\x00\x04\x02\xff\xff\xff"),
		"a record with the largest length":      once("\x16\x03\x03\xff\xff"),
		"a reply of HTTP":                       once("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"a greeting of SSH":                     once("SSH-2.0-OpenSSH_9.2\r\n"),
		"SETTINGS of HTTP/2":                    once("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"),
		"a hello of SSL 2":                      once("\x80\x2e\x04\x00\x01\x00\x02\x03\x00\x00\x00"),
		"a record of DTLS":                      once("\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x2f\x03\x00\x00\x23\x00\x00\x00\x00\x00\x00\x00\x23\xfe\xfd"),
		"an alert":                              once("\x15\x03\x03\x00\x02\x02\x28"),
		"an alert of level 0":                   once("\x15\x03\x03\x00\x02\x00\x28"),
		"close_notify":                          once("\x15\x03\x03\x00\x02\x01\x00"),
		"a hello of a client":                   once("\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03" + string(make([]byte, 32)) + "\x00\x00\x02\x13\x01\x01\x00\x00\x00"),
		"a hello of TLS 1.2 without the others": once("\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03" + string(make([]byte, 32)) + "\x00\xc0\x2b\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			serveOn(t, listener, func(conn net.Conn) {
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					misbehave(conn)
				}
			})
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				conn := p.dial(t, listener.Addr().String(), "localhost")
				_ = conn.SetDeadline(time.Time{})
				within(t, "the handshake", func() {
					if conn.HandshakeContext(t.Context()) == nil {
						t.Error("the handshake succeeded")
					}
				})
			})
		})
	}
}

func TestCertificatesOfHalfAMegabyteEndTheHandshake(t *testing.T) {
	authority := newAuthority(t)
	for name, test := range map[string]struct {
		times   int
		refused bool
	}{"50 times the authority": {times: 50}, "1,200 times the authority": {times: 1200, refused: true}} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+", "+tls.VersionName(version), func(t *testing.T) {
				config := authority.serverConfig(t)
				for range test.times {
					config.Certificates[0].Certificate = append(config.Certificates[0].Certificate, authority.certificate.Raw)
				}
				address := serve(t, config, echo)
				withEachProvider(t, openssl.Config{RootCAs: authority.pem, MaxVersion: version}, func(t *testing.T, p provider) {
					within(t, "the handshake", func() {
						if err := roundTrip(p.dial(t, address, "localhost"), "hello"); (err != nil) != test.refused {
							t.Errorf("the handshake ended with %v", err)
						}
					})
				})
			})
		}
	}
}

// A server may ask for a second ClientHello once (RFC 8446, section 4.1.4).
func TestAServerThatAlwaysAsksForAnotherHelloIsRefused(t *testing.T) {
	authority := newAuthority(t)
	for name, groups := range map[string][]byte{"for one group": {0, 24}, "for two groups in turn": {0, 24, 0, 25}, "for a group that nobody offers": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			serveOn(t, listener, func(conn net.Conn) {
				for i := 0; ; i += 2 {
					header := make([]byte, 5)
					if _, err := io.ReadFull(conn, header); err != nil {
						return
					}
					body := make([]byte, int(header[3])<<8|int(header[4]))
					if _, err := io.ReadFull(conn, body); err != nil {
						return
					}
					if header[0] != recordHandshake {
						continue // such as ChangeCipherSpec, which needs no answer
					}
					// The session id of the hello is behind its header, version and random value.
					id := body[38 : 39+int(body[38])]
					retry := sha256.Sum256([]byte("HelloRetryRequest"))
					content := slices.Concat([]byte{3, 3}, retry[:], id, []byte{0x13, 1, 0, 0, 12, 0, 43, 0, 2, 3, 4, 0, 51, 0, 2}, groups[i%len(groups):][:2])
					message := handshakeMessage(2, content...)
					if _, err := conn.Write(append([]byte{recordHandshake, 3, 3, 0, byte(len(message))}, message...)); err != nil {
						return
					}
				}
			})
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				conn := p.dial(t, listener.Addr().String(), "localhost")
				_ = conn.SetDeadline(time.Time{})
				within(t, "the handshake", func() {
					if conn.HandshakeContext(t.Context()) == nil {
						t.Error("the handshake succeeded")
					}
				})
			})
		})
	}
}
