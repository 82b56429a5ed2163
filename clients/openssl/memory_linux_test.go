// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

func TestConnectionsLeaveNoMemoryBehind(t *testing.T) {
	connections := 2500
	if testing.Short() {
		connections = 250
	}
	servers, clients := newAuthority(t), newAuthority(t)
	certificate := clients.issue(t, forClients)
	address := serve(t, requireClients(servers.serverConfig(t), clients), echo)
	p := opensslProvider(t, openssl.Config{
		RootCAs: servers.pem, Certificate: certificate.certificate, PrivateKey: certificate.key, SessionCacheSize: 1,
	})
	connect := func(times int) {
		for i := range times {
			if err := connectOnce(p, address, "localhost", "hello"); err != nil {
				t.Fatal(err)
			}
			// Connections that fail are freed elsewhere.
			if i%10 == 0 && connectOnce(p, address, "example.com", "hello") == nil {
				t.Fatal("a connection to the wrong host succeeded")
			}
		}
	}
	connect(connections / 5)
	before := residentMemory(t)
	connect(connections)
	// A connection has more than 10 KiB. What else the process has changes by 1 MiB.
	const limit = 8 << 20
	if after := residentMemory(t); after > before+limit {
		t.Errorf("%d connections left %d KiB behind, expected less than %d KiB", connections, (after-before)>>10, limit>>10)
	}
}

// residentMemory returns the memory of the process in bytes, after Go has given back what it does not use.
func residentMemory(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Fatal("found no VmRSS in /proc/self/status")
	}
	kibibytes, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
