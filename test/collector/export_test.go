// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
)

// hash makes calls that have to succeed.
func (b *broker) hash(calls int) {
	b.t.Helper()
	conn := b.connect()
	request := newCaller(b.t).hash(traceContext{})
	for range calls {
		if err := conn.Invoke(b.t.Context(), "/CryptoBroker.CryptoGrpc/HashData", request, &emptypb.Empty{}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// metrics reads the metrics of the broker by HTTP.
func (b *broker) metrics() string {
	b.t.Helper()
	var line struct{ Status string }
	for text := range strings.Lines(b.stderr.String()) {
		if strings.Contains(text, `"msg":"listening"`) {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	answer, err := http.Get("http://" + line.Status + "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// measures waits until the metrics have a sample.
func (b *broker) measures(sample string) {
	b.t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(waitLimit); !strings.Contains(b.metrics(), sample+"\n"); {
		select {
		case <-again.C:
		case <-deadline:
			b.t.Fatalf("the metrics have no %s", sample)
		}
	}
}

func TestNothingIsExportedAndNothingWrittenUnlessAskedFor(t *testing.T) {
	b := startBroker(t, nil)
	b.hash(3)
	b.stop()
	if b.stdout.String() != "" || strings.Contains(b.stderr.String(), "span") {
		t.Errorf("wrote %q and %q", b.stdout.String(), b.stderr.String())
	}
}

func TestTheConsoleGetsALineForEachSpan(t *testing.T) {
	b := startBroker(t, []string{"OTEL_TRACES_EXPORTER=console"})
	b.hash(3)
	b.stop()
	lines := strings.Split(strings.TrimSpace(b.stdout.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %d lines, want 3:\n%s", len(lines), b.stdout.String())
	}
	for _, line := range lines {
		var span struct{ Name string }
		if err := json.Unmarshal([]byte(line), &span); err != nil || span.Name != "CryptoBroker.CryptoGrpc/HashData" {
			t.Errorf("got %q: %v", line, err)
		}
	}
}

func TestSpansGoToAllExporters(t *testing.T) {
	to := newSink(t)
	b := startBroker(t, []string{"OTEL_TRACES_EXPORTER=console,otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL, "OTEL_BSP_SCHEDULE_DELAY=20"})
	b.hash(2)
	to.wait(t, 2)
	b.awaitOutput(&b.stdout, "CryptoGrpc")
	for _, sample := range []string{`crypto_broker_spans_exported_total{exporter="otlp"} 2`, `crypto_broker_spans_dropped_total{exporter="otlp",reason="queue_full"} 0`, `crypto_broker_spans_dropped_total{exporter="console",reason="export_failed"} 0`} {
		b.measures(sample)
	}
}

func TestACollectorThatTakesNoSpansDisturbsNobody(t *testing.T) {
	for place, test := range map[string]struct {
		address func(*testing.T) string
		full    bool // the queue of spans is full
	}{
		"and is not there":  {reserve, false},
		"and never answers": {silent, true},
	} {
		for _, protocol := range []string{"grpc", "http/protobuf"} {
			t.Run(place+", over "+protocol, func(t *testing.T) {
				t.Parallel()
				b := startBroker(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + test.address(t),
					"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5", "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_EXPORT_TIMEOUT=1000"})
				const calls = 500
				b.hash(calls)
				b.awaitOutput(&b.stderr, "the export of spans failed")
				b.measures(fmt.Sprintf(`crypto_broker_requests_total{code="OK",operation="HashData",profile="Default"} %d`, calls))
				b.measures(`crypto_broker_spans_exported_total{exporter="otlp"} 0`)
				if test.full && strings.Contains(b.metrics(), `crypto_broker_spans_dropped_total{exporter="otlp",reason="queue_full"} 0`) {
					t.Error("no span was counted as dropped because too many waited")
				}
				if took := b.stop(); took > 15*time.Second {
					t.Errorf("it took %s to end", took)
				}
				if n := strings.Count(b.stderr.String(), `"msg":"the export of spans failed`); n != 1 {
					t.Errorf("it said %d times that the export of spans failed, want once", n)
				}
			})
		}
	}
}

// silent returns an address that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestACollectorThatComesBackGetsSpansAgain(t *testing.T) {
	to := newSink(t)
	address := reserve(t)
	b := startBroker(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address,
		"OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_EXPORT_TIMEOUT=2000"})
	b.hash(1)
	b.awaitOutput(&b.stderr, "the export of spans failed")
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: to.Config.Handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	b.hash(1)
	to.wait(t, 1)
	b.awaitOutput(&b.stderr, "spans are exported again")
}

func TestHeadersAndResourcesAreSent(t *testing.T) {
	to := newSink(t)
	b := startBroker(t, []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=http://unused.example", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_EXPORTER_OTLP_HEADERS=x-team=payments%20team,x-other=1", "OTEL_EXPORTER_OTLP_HEADERS_AUTHORIZATION=Api-Token secret",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test,service.name=other", "OTEL_SERVICE_NAME=variable", "OTEL_SERVICE_VERSION=9",
	}, "--traces-endpoint", to.URL+"/v1/traces", "--service-name", "flag")
	b.hash(1)
	b.stop()
	to.wait(t, 1)
	for name, want := range map[string]string{"x-team": "payments team", "x-other": "1", "Authorization": "Api-Token secret", "Content-Encoding": "gzip"} {
		if got := to.headers[0].Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"service.name": "flag", "service.version": "9", "deployment.environment.name": "test", "service.namespace": "crypto-broker"} {
		if got := to.receivedSpans()[0].resource[name]; got != want {
			t.Errorf("%s is %v, want %q", name, got, want)
		}
	}
	if strings.Contains(b.stderr.String(), "secret") {
		t.Error("the log has a header in it")
	}
}

func TestACollectorIsCheckedAndChecksTheBroker(t *testing.T) {
	authority := newAuthority(t)
	certificate, key := authority.files(t, "collector")
	security := fmt.Sprintf(`, tls: {cert_file: %s, key_file: %s, client_ca_file: %s}`, certificate, key, authority.file)
	clientCertificate, clientKey := authority.files(t, "broker")
	for sentence, variables := range map[string]func(*collector) []string{
		"over gRPC": func(c *collector) []string {
			return []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=https://" + c.grpc}
		},
		"over gRPC, to host and port": func(c *collector) []string {
			return []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.grpc}
		},
		"over HTTP": func(c *collector) []string {
			return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://" + c.http}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			to := newSink(t)
			c := startCollector(t, to, security)
			trusting := append(variables(c), "OTEL_EXPORTER_OTLP_CERTIFICATE="+authority.file)
			b := startBroker(t, append(trusting, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE="+clientCertificate, "OTEL_EXPORTER_OTLP_CLIENT_KEY="+clientKey))
			b.hash(1)
			b.stop()
			if spans := to.receivedSpans(); len(spans) != 1 {
				t.Errorf("got %d spans, want 1", len(spans))
			}
			for sentence, variables := range map[string][]string{
				"without a certificate of its own": trusting,
				"without trust in the collector's": append(variables(c), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE="+clientCertificate, "OTEL_EXPORTER_OTLP_CLIENT_KEY="+clientKey),
			} {
				b := startBroker(t, append(variables, "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_EXPORT_TIMEOUT=500"))
				b.hash(1)
				b.awaitOutput(&b.stderr, "the export of spans failed")
				if spans := to.receivedSpans(); len(spans) != 1 {
					t.Errorf("%s: got %d spans, want none", sentence, len(spans)-1)
				}
			}
		})
	}
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{file: filepath.Join(t.TempDir(), "authority.crt")}
	var der []byte
	a.key, der = issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	var err error
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.file, "CERTIFICATE", der)
	return a
}

// files are the files of a certificate and its key.
func (a authority) files(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	made, der := issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &a)
	private, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	write(t, certificate, "CERTIFICATE", der)
	write(t, key, "PRIVATE KEY", private)
	return certificate, key
}

// issue makes a key and its certificate. Without an authority the certificate is self-signed.
func issue(t *testing.T, template *x509.Certificate, by *authority) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
