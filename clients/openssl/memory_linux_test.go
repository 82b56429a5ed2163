// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
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

// The variables of a process that TestAProcessWithOpenSSLTakesLittleMoreMemory starts.
const (
	measuredProvider = "MEASURED_PROVIDER"
	measuredServer   = "MEASURED_SERVER"
	measuredRoots    = "MEASURED_ROOTS"
	measuredCount    = "MEASURED_CONNECTIONS"
)

// A process with each provider makes 20 requests over each of its connections, which stay open. The library and its
// connections are part of the difference.
func TestAProcessWithOpenSSLTakesLittleMoreMemory(t *testing.T) {
	if which := os.Getenv(measuredProvider); which != "" {
		fmt.Printf("resident %d\n", memoryWithConnections(t, which))
		return
	}
	const (
		limit = 10 << 20
		// On a busy machine a process may have more garbage, so only the least of some measurements counts.
		attempts = 5
	)
	for _, connections := range []int{10, 100} {
		least := math.MaxInt
		for n := 0; n < attempts && least > limit; n++ {
			usual, more := compareMemory(t, connections)
			t.Logf("%d connections: crypto/tls %.1f MiB, OpenSSL %.1f MiB more", connections, mebibytes(usual), mebibytes(more))
			least = min(least, more)
		}
		if least > limit {
			t.Errorf("a process with OpenSSL and %d connections has at least %d KiB more in %d measurements, expected %d KiB at most", connections, least>>10, attempts, limit>>10)
		}
	}
}

func BenchmarkMemoryOfProcesses(b *testing.B) {
	const rounds = 3
	for _, connections := range []int{10, 100} {
		b.Run(fmt.Sprintf("With%dConnections", connections), func(b *testing.B) {
			var usual, more []float64
			for range rounds {
				one, other := compareMemory(b, connections)
				usual, more = append(usual, mebibytes(one)), append(more, mebibytes(other))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(usual), "MiB-go")
			b.ReportMetric(median(more), "MiB-more-with-openssl")
		})
	}
}

func mebibytes(bytes int) float64 { return float64(bytes) / (1 << 20) }

// compareMemory returns the resident memory in bytes of a process with crypto/tls, and how much more a process with
// OpenSSL has.
func compareMemory(t testing.TB, connections int) (usual, more int) {
	t.Helper()
	authority := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	server.TLS = authority.serverConfig(t)
	server.StartTLS()
	defer server.Close()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, authority.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	resident := func(which string) int {
		t.Helper()
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessWithOpenSSLTakesLittleMoreMemory$")
		command.Env = append(os.Environ(), measuredProvider+"="+which, measuredServer+"="+server.URL, measuredRoots+"="+roots, measuredCount+"="+strconv.Itoa(connections))
		output, err := command.CombinedOutput()
		_, rest, _ := strings.Cut(string(output), "resident ")
		number, _, _ := strings.Cut(rest, "\n")
		bytes, bad := strconv.Atoi(number)
		if err != nil || bad != nil {
			t.Fatalf("%s: %v\n%s", which, err, output)
		}
		return bytes
	}
	usual = resident("go")
	return usual, resident("openssl") - usual
}

// memoryWithConnections makes the requests with a provider, and returns the resident memory of this process.
func memoryWithConnections(t *testing.T, which string) int {
	t.Helper()
	roots, err := os.ReadFile(os.Getenv(measuredRoots))
	if err != nil {
		t.Fatal(err)
	}
	p := goProvider(t, openssl.Config{RootCAs: roots})
	if which == "openssl" {
		p = opensslProvider(t, openssl.Config{RootCAs: roots})
	}
	connections, err := strconv.Atoi(os.Getenv(measuredCount))
	if err != nil {
		t.Fatal(err)
	}
	transport := p.http1()
	// Without a limit, net/http makes more connections than it uses.
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost, transport.MaxIdleConns = connections, connections, connections
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	var working sync.WaitGroup
	for range connections {
		working.Go(func() {
			for range 20 {
				response, err := client.Get(os.Getenv(measuredServer))
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := io.ReadAll(response.Body); err != nil || string(text) != "hello" {
					t.Errorf("read %q, %v", text, err)
				}
				_ = response.Body.Close()
			}
		})
	}
	working.Wait()
	return residentMemory(t)
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
