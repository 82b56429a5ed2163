// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

func TestASecondConnectionResumesTheSessionOfTheFirst(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for size, resumed := range map[int]bool{0: false, 2: true} {
			t.Run(fmt.Sprintf("%s with %d sessions", tls.VersionName(version), size), func(t *testing.T) {
				config := openssl.Config{RootCAs: authority.pem, MaxVersion: version, SessionCacheSize: size}
				withEachProvider(t, config, func(t *testing.T, p provider) {
					for i := range 3 {
						conn := p.dial(t, address, "localhost")
						if err := roundTrip(conn, "hello"); err != nil {
							t.Fatal(err)
						}
						state := conn.ConnectionState()
						if state.DidResume != (resumed && i > 0) || len(state.PeerCertificates) != 1 {
							t.Errorf("connection %d: resumed is %t, and the peer has %d certificates", i, state.DidResume, len(state.PeerCertificates))
						}
						_ = conn.Close()
					}
				})
			})
		}
	}
}

func TestASessionIsForItsHostOnly(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem, SessionCacheSize: 2}, func(t *testing.T, p provider) {
		if err := roundTrip(p.dial(t, address, "localhost"), "hello"); err != nil {
			t.Fatal(err)
		}
		if err := p.dial(t, address, "example.com").HandshakeContext(t.Context()); err == nil {
			t.Error("a session of localhost was resumed for another host")
		}
		other := p.dial(t, address, "127.0.0.1")
		if err := roundTrip(other, "hello"); err != nil || other.ConnectionState().DidResume {
			t.Errorf("the connection to the address: %v, resumed is %t", err, other.ConnectionState().DidResume)
		}
	})
}

func TestTheOldestSessionGoesWhenTheCacheIsFull(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	p := opensslProvider(t, openssl.Config{RootCAs: authority.pem, SessionCacheSize: 1})
	for _, name := range []string{"localhost", "127.0.0.1", "localhost"} {
		conn := p.dial(t, address, name)
		if err := roundTrip(conn, "hello"); err != nil || conn.ConnectionState().DidResume {
			t.Errorf("the connection to %s: %v, resumed is %t", name, err, conn.ConnectionState().DidResume)
		}
		_ = conn.Close()
	}
}

// A resumed session does not verify the chain again.
func TestASessionEndsWithTheFirstCertificateOfItsChain(t *testing.T) {
	authority := newAuthority(t)
	between := authority.issueAuthority(t, time.Now().Add(time.Hour)) // the other sessions last a day or more
	leaf := between.issue(t, nil)
	pair := leaf.pair(t)
	pair.Certificate = append(pair.Certificate, between.certificate.Raw)
	address := serve(t, &tls.Config{Certificates: []tls.Certificate{pair}}, echo)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			client, err := openssl.New(openssl.Config{RootCAs: authority.pem, MaxVersion: version, SessionCacheSize: 1, Library: testLibrary})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			// The second session comes from a connection that resumed the first one.
			for i, step := range []struct {
				after   time.Duration
				resumed bool
			}{{0, false}, {0, true}, {59 * time.Minute, true}, {61 * time.Minute, false}, {0, true}} {
				client.SetClock(func() time.Time { return time.Now().Add(step.after) })
				conn, err := client.DialTLSContext(t.Context(), "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				if err := roundTrip(conn, "hello"); err != nil {
					t.Fatal(err)
				}
				if resumed := conn.(*openssl.Conn).ConnectionState().DidResume; resumed != step.resumed {
					t.Errorf("connection %d, after %s: resumed is %t", i, step.after, resumed)
				}
				_ = conn.Close()
			}
		})
	}
}

func TestAThousandConnectionsWork(t *testing.T) {
	const atOnce = 50
	batches := 20
	if testing.Short() {
		batches = 2
	}
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		for range batches {
			var working sync.WaitGroup
			for i := range atOnce {
				working.Go(func() {
					if err := connectOnce(p, address, "localhost", fmt.Sprint("message ", i)); err != nil {
						t.Error(err)
					}
				})
			}
			working.Wait()
		}
	})
}

func connectOnce(p provider, address, serverName, message string) error {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	conn, err := p.connect(raw, serverName)
	if err != nil {
		_ = raw.Close()
		return err
	}
	defer func() { _ = conn.Close() }()
	return errors.Join(conn.SetDeadline(time.Now().Add(patience)), roundTrip(conn, message))
}

func TestAConnectionThatNobodyClosesIsFreed(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), hold)
	// Connections of other tests may be closing.
	none := [3]int64{}
	waitFor(t, "the connections of other tests to be freed", func() bool { return openssl.Live() == none })
	func() {
		client, err := openssl.New(openssl.Config{RootCAs: authority.pem, Library: testLibrary})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.DialTLSContext(t.Context(), "tcp", address); err != nil {
			t.Fatal(err)
		}
	}()
	waitFor(t, "the context and the connection to be freed", func() bool {
		runtime.GC()
		return openssl.Live() == none
	})
}

// waitFor waits until the condition is true.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
