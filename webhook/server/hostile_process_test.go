// SPDX-License-Identifier: Apache-2.0

//go:build process

package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// hostile are ways to occupy connections. Each function occupies one connection until the test ends.
var hostile = map[string]func(t *testing.T, s served, address string) error{
	"connect and say nothing": func(t *testing.T, s served, address string) error {
		connection, err := s.from(t, address)
		if err == nil {
			t.Cleanup(func() { _ = connection.Close() })
		}
		return err
	},
	"begin a handshake": func(t *testing.T, s served, address string) error {
		connection, err := s.from(t, address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = connection.Close() })
		_, err = connection.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252})
		return err
	},
	"announce a large request": func(t *testing.T, s served, address string) error {
		connection, err := s.from(t, address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = connection.Close() })
		secured := tls.Client(connection, &tls.Config{RootCAs: s.trusted, ServerName: "webhook", MinVersion: tls.VersionTLS13})
		_, err = io.WriteString(secured, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7000000\r\n\r\n")
		return err
	},
	"begin a request": func(t *testing.T, s served, address string) error {
		connection, err := s.from(t, address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = connection.Close() })
		secured := tls.Client(connection, &tls.Config{RootCAs: s.trusted, ServerName: "webhook", MinVersion: tls.VersionTLS13})
		_, err = io.WriteString(secured, "POST / HTTP/1.1\r\n")
		return err
	},
}

// Without shares, a client that occupies all connections, or all handshakes, would make other clients wait for its timeouts of five
// seconds.
func TestAnHonestClientIsAnsweredWhileOthersHoldWhatTheyCan(t *testing.T) {
	for what, attack := range hostile {
		for _, addresses := range []int{1, 20} {
			t.Run(fmt.Sprintf("%s, from %d addresses", what, addresses), func(t *testing.T) {
				s := serve(t, hello)
				var attacks sync.WaitGroup
				for i := range addresses {
					attacks.Go(func() {
						for range 1100 / addresses {
							// A connection beyond the share is closed, now or later.
							if attack(t, s, fmt.Sprintf("127.0.1.%d", i+1)) != nil {
								continue
							}
						}
					})
				}
				attacks.Wait()
				client := s.client(t, "127.0.0.1")
				for range 10 {
					begin := time.Now()
					if err := s.ask(t, client, "{}"); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took > 4*time.Second {
						t.Errorf("an answer took %s", took)
					}
				}
			})
		}
	}
}
