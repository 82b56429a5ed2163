// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestAReservedAddressIsForServersThatComeAndGo(t *testing.T) {
	address, err := Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Reserve("127.0.0.1"); err != nil || other == address {
		t.Errorf("the second one is %s, %v, expected another one than %s", other, err, address)
	}
	for range 2 {
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("while nobody listens: %v, expected that the connection is refused", err)
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(conn.Close(), listener.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyHostsThatAreIPv4AddressesAreReserved(t *testing.T) {
	for _, host := range []string{"", "localhost", "::1"} {
		if address, err := Reserve(host); err == nil {
			t.Errorf("%q: found %s, expected an error", host, address)
		}
	}
}
