// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// silentServer accepts connections and sends nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, func(raw net.Conn) { _, _ = io.Copy(io.Discard, raw) })
	return listener.Addr().String()
}

func TestAHandshakeWithASilentPeerEnds(t *testing.T) {
	authority := newAuthority(t)
	address := silentServer(t)
	for name, test := range map[string]struct {
		begin    func(context.Context, tlsConn) error
		expected error
	}{
		"when the context is canceled": {
			begin: func(ctx context.Context, conn tlsConn) error {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(10*time.Millisecond, cancel)
				return conn.HandshakeContext(ctx)
			},
			expected: context.Canceled,
		},
		"when the context was canceled before": {
			begin: func(ctx context.Context, conn tlsConn) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return conn.HandshakeContext(ctx)
			},
			expected: context.Canceled,
		},
		"at the deadline of the context": {
			begin: func(ctx context.Context, conn tlsConn) error {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
				defer cancel()
				return conn.HandshakeContext(ctx)
			},
			expected: context.DeadlineExceeded,
		},
		"at the deadline of the connection": {
			begin: func(ctx context.Context, conn tlsConn) error {
				if err := conn.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
					return err
				}
				return conn.HandshakeContext(ctx)
			},
			expected: os.ErrDeadlineExceeded,
		},
		"when the connection is closed": {
			begin: func(ctx context.Context, conn tlsConn) error {
				time.AfterFunc(10*time.Millisecond, func() { _ = conn.Close() })
				return conn.HandshakeContext(ctx)
			},
			expected: net.ErrClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				conn := p.dial(t, address, "localhost")
				_ = conn.SetDeadline(time.Time{})
				ended := make(chan error, 1)
				go func() { ended <- test.begin(t.Context(), conn) }()
				select {
				case err := <-ended:
					if !errors.Is(err, test.expected) {
						t.Errorf("the handshake ended with %v, expected %v", err, test.expected)
					}
				case <-time.After(patience):
					t.Error("the handshake did not end")
				}
			})
		})
	}
}

func TestARequestToASilentServerEndsWithoutAContext(t *testing.T) {
	client, err := openssl.New(openssl.Config{Library: testLibrary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.SetHandshakeTimeout(10 * time.Millisecond)
	response, err := httpClient(t, client.Transport()).Get("https://" + silentServer(t))
	if err == nil {
		_ = response.Body.Close()
	}
	// The timeout of the test's client does not mention the handshake.
	if err == nil || !strings.Contains(err.Error(), "handshake") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request ended with %v", err)
	}
}

func TestAReadGoesOnAfterADeadline(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		conn := p.dial(t, address, "localhost")
		if err := roundTrip(conn, "before"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		var timeout net.Error
		if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the read ended with %v, expected a timeout", err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if err := roundTrip(conn, "after"); err != nil {
			t.Error(err)
		}
	})
}

func TestAWriteEndsAtItsDeadlineAndReadingGoesOn(t *testing.T) {
	authority := newAuthority(t)
	stop := make(chan struct{})
	defer close(stop)
	address := serve(t, authority.serverConfig(t), func(conn *tls.Conn) {
		// This server writes something after the handshake, and reads nothing.
		_, _ = conn.Write([]byte("hello"))
		<-stop
	})
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		conn := p.dial(t, address, "localhost")
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		var timeout net.Error
		for {
			_, err := conn.Write(make([]byte, 1<<20))
			if err == nil {
				continue
			}
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("the write ended with %v, expected a timeout", err)
			}
			break
		}
		_ = conn.SetWriteDeadline(time.Now().Add(patience))
		if _, err := conn.Write([]byte("more")); err == nil {
			t.Error("a write succeeded although a record was cut before")
		}
		greeting := make([]byte, 5)
		if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != "hello" {
			t.Errorf("read %q: %v", greeting, err)
		}
	})
}

func TestCloseEndsReadsAndWrites(t *testing.T) {
	authority := newAuthority(t)
	stop := make(chan struct{})
	defer close(stop)
	address := serve(t, authority.serverConfig(t), func(conn *tls.Conn) {
		if conn.Handshake() == nil {
			<-stop
		}
	})
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		conn := p.dial(t, address, "localhost")
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var working sync.WaitGroup
		wrote := make(chan struct{})
		working.Go(func() {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("a read succeeded on a closed connection")
			}
		})
		working.Go(func() {
			_, err := conn.Write(make([]byte, 1))
			close(wrote)
			for err == nil {
				_, err = conn.Write(make([]byte, 1<<20))
			}
		})
		<-wrote
		_ = conn.Close()
		working.Wait()
		if err := conn.Close(); err == nil && p.isOpenSSL {
			t.Error("a second Close succeeded")
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read after Close ended with %v", err)
		}
		if _, err := conn.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) && p.isOpenSSL {
			t.Errorf("a write after Close ended with %v", err)
		}
	})
}

func TestReadingGoesOnAfterCloseWrite(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), func(conn *tls.Conn) {
		got, err := io.ReadAll(conn)
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(strings.ToUpper(string(got))))
		_ = conn.Close()
	})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem, MaxVersion: version}, func(t *testing.T, p provider) {
				conn := p.dial(t, address, "localhost")
				if err := conn.CloseWrite(); err == nil {
					t.Error("CloseWrite succeeded before the handshake")
				}
				if _, err := conn.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				if err := conn.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Write([]byte("more")); err == nil {
					t.Error("a write after CloseWrite succeeded")
				}
				if got, err := io.ReadAll(conn); err != nil || string(got) != "HELLO" {
					t.Errorf("read %q: %v", got, err)
				}
			})
		})
	}
}

func TestAConnectionThatIsCutIsNoEndOfTheData(t *testing.T) {
	authority := newAuthority(t)
	for name, test := range map[string]struct {
		end     func(*tls.Conn)
		openssl error
		goTLS   error
	}{
		// crypto/tls does not distinguish the two cases: it returns EOF for both.
		"with close_notify":    {end: func(conn *tls.Conn) { _ = conn.Close() }, openssl: io.EOF, goTLS: io.EOF},
		"without close_notify": {end: func(conn *tls.Conn) { _ = conn.NetConn().Close() }, openssl: openssl.ErrTruncated, goTLS: io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, authority.serverConfig(t), func(conn *tls.Conn) {
				// The data of the client is read, so that the kernel sends no reset.
				_, _ = io.ReadFull(conn, make([]byte, 1))
				_, _ = conn.Write([]byte("hello"))
				test.end(conn)
			})
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				conn := p.dial(t, address, "localhost")
				if _, err := conn.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 5)
				if _, err := io.ReadFull(conn, got); err != nil {
					t.Fatal(err)
				}
				expected := test.goTLS
				if p.isOpenSSL {
					expected = test.openssl
				}
				for range 2 {
					if n, err := conn.Read(got); n != 0 || err != expected { //nolint:errorlint // io.EOF is returned as it is
						t.Errorf("read %d bytes with %v, expected %v", n, err, expected)
					}
				}
			})
		})
	}
	if !errors.Is(openssl.ErrTruncated, io.ErrUnexpectedEOF) || errors.Is(openssl.ErrTruncated, io.EOF) {
		t.Error("the error of a cut connection is not io.ErrUnexpectedEOF")
	}
}

func TestReadsAndWritesOfManyGoroutinesDoNotDisturbEachOther(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	const writers, messages, size = 4, 200, 1000
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		conn := p.dial(t, address, "localhost")
		var working sync.WaitGroup
		for writer := range writers {
			working.Go(func() {
				message := make([]byte, size)
				for i := range message {
					message[i] = byte(writer)
				}
				for range messages {
					if n, err := conn.Write(message); n != size || err != nil {
						t.Errorf("wrote %d bytes: %v", n, err)
						return
					}
				}
			})
		}
		got := make([]byte, writers*messages*size)
		if _, err := io.ReadFull(conn, got); err != nil {
			t.Fatal(err)
		}
		working.Wait()
		counts := map[byte]int{}
		for i := 0; i < len(got); i += size {
			for _, b := range got[i : i+size] {
				if b != got[i] {
					t.Fatalf("a message at %d is mixed with another", i)
				}
			}
			counts[got[i]]++
		}
		for writer := range writers {
			if counts[byte(writer)] != messages {
				t.Errorf("found %d messages of writer %d", counts[byte(writer)], writer)
			}
		}
	})
}
