// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// startRecorder runs an OpenTelemetry Collector with TLS that writes the logs that it gets into a
// file. It returns the file and the authorities of its certificate.
func startRecorder(t *testing.T, address string) (file, authorities string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "../../hack/tools/build", "collector")
	build.Stderr = os.Stderr
	path, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server := newKeyAccessProcess(t, "certificate") // only its certificate is used
	authorities, file = filepath.Join(server.dir, "tls", "tls.crt"), filepath.Join(dir, "logs.json")
	collector := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), "--config=yaml:"+fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "%s", tls: {cert_file: %s, key_file: %s}}
exporters:
  file: {path: "%s"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], exporters: [file]}
`, address, authorities, filepath.Join(server.dir, "tls", "tls.key"), file))
	var said bytes.Buffer
	collector.Stderr, collector.Cancel = &said, func() error { return collector.Process.Signal(syscall.SIGTERM) }
	if err := collector.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := collector.Wait(); err == nil || t.Failed() {
			t.Logf("the collector ended with %v: %s", err, &said)
		}
	})
	awaitPort(t, address) // a service that ends earlier would lose its records
	return file, authorities
}

// awaitPort waits until a program accepts connections at an address.
func awaitPort(t *testing.T, address string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close() // nothing was sent
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(err)
		}
	}
}

func TestTheRecordsOfAKeyAccessServiceReachACollector(t *testing.T) {
	if config := os.Getenv(gatewayEnvironment); config != "" {
		ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
		code := run(ctx, []string{"key-access", "--config", config}, os.LookupEnv, os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	file, authorities := startRecorder(t, address)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	from := issuer.Start(t, issuer.Options{Audience: "key-access"})
	service := newKeyAccessProcess(t, "a")
	signer := write(t, filepath.Join(service.dir, "audit.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	service.configure(from, newKeyAccessProcess(t, "b"))
	config := filepath.Join(service.dir, "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, fmt.Sprintf("%saudit: {endpoint: 'https://%s', authoritiesFile: %s, keyFile: %s}\n", text, address, authorities, signer))
	service.start()
	client := newKeyAccessClient(t, from, []*keyAccessProcess{service})
	const asked = 5
	for range asked {
		if found := client.ask(); found != "permit" {
			t.Fatalf("found %s: %s", found, service.logged())
		}
	}
	if err := service.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := service.process.Wait(); err != nil || service.process.ProcessState.ExitCode() != program.ExitOK {
		t.Fatalf("the service ended with %v: %s", err, service.logged())
	}
	records := recordsOf(t, file, key)
	if len(records) != asked {
		t.Fatalf("the collector has %d records of decisions, expected %d", len(records), asked)
	}
	for _, r := range records {
		if r.Result != "permitted" || r.Caller != "alice" || r.Key != "ec-1" || r.Service != "crypto-broker-key-access" {
			t.Errorf("found the record %+v", r)
		}
	}
}

// decision is the record of a decision.
type decision struct {
	Event, Result string
	Caller        string `json:"user.name"`
	Key           string `json:"key.id"`
	Service       string `json:"service.name"`
}

// recordsOf waits until the collector has a whole chain, which a key signs, and returns its records of
// decisions.
func recordsOf(t *testing.T, file string, key ed25519.PrivateKey) (found []decision) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond) // the collector writes each second
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var lines audit.Collected
		v := audit.NewVerifier(key.Public())
		err = lines.Read(file, bytes.NewReader(text))
		if err == nil {
			err = lines.Verify(v)
		}
		if report := v.Report(); err == nil && report.Records > 0 && report.Unsigned == 0 && len(report.Notes) == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the chain is not complete: %v, %+v", err, v.Report())
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var export struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct{ Body struct{ StringValue string } }
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &export); err != nil {
			t.Fatal(err)
		}
		for _, resource := range export.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				for _, record := range scope.LogRecords {
					var d decision
					if err := json.Unmarshal([]byte(record.Body.StringValue), &d); err != nil {
						t.Fatal(err)
					}
					if d.Event == "key-access" {
						found = append(found, d)
					}
				}
			}
		}
	}
	return found
}
