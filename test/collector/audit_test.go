// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// auditedProfiles ask for a record of each call. Replies with the profile Default wait for the record.
const auditedProfiles = `- Name: Default
  Audit: {Level: all, Required: true}
  API: {HashData: {HashAlg: sha-256}}
- Name: Later
  Audit: {Level: all}
  API: {HashData: {HashAlg: sha-256}}
`

// recorder is a collector that writes the logs that it gets into a file.
type recorder struct {
	*process
	address, file string
}

// startRecorder runs a collector at an address. security is how its receiver is set up for TLS, in
// YAML, or empty.
func startRecorder(t *testing.T, address, file, security string) *recorder {
	t.Helper()
	r := &recorder{address: address, file: file}
	config := fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "%s"%s}
exporters:
  file: {path: "%s", append: true}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], exporters: [file]}
`, address, security, file)
	r.process = start(t, []string{}, collectorProgram, "--config=yaml:"+config)
	r.awaitOutput(&r.stderr, "Everything is ready")
	return r
}

// verified returns the records that the collector has written, and fails the test if they are not intact.
func verified(t *testing.T, file string, key ed25519.PrivateKey) audit.Report {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var lines audit.Collected
	v := audit.NewVerifier(key.Public())
	if err := lines.Read(file, text); err != nil {
		t.Fatal(err)
	}
	if err := lines.Verify(v); err != nil {
		t.Error(err)
	}
	return v.Report()
}

// startRecorded runs a broker whose records go to a collector, and returns the key that signs them.
func startRecorded(t *testing.T, variables []string, args ...string) (*broker, ed25519.PrivateKey) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return startBrokerWith(t, auditedProfiles, variables, append(args, "--audit-key", file)...), key
}

// hashOnce makes a call under a profile and returns its code.
func hashOnce(t *testing.T, on *grpc.ClientConn, profile string) codes.Code {
	t.Helper()
	return status.Code(on.Invoke(t.Context(), "/CryptoBroker.CryptoGrpc/HashData", &v1.HashDataRequest{Profile: profile, Input: []byte(secretInput)}, &emptypb.Empty{}))
}

func TestACollectorHasTheRecordsOfAllRepliesOfABrokerThatIsKilled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "logs.json")
	r := startRecorder(t, reserve(t), file, "")
	replies := 0
	var key ed25519.PrivateKey
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		var b *broker
		b, key = startRecorded(t, nil, "--audit-otlp-endpoint", "http://"+r.address)
		conn := b.connect()
		for range 20 {
			if code := hashOnce(t, conn, "Default"); code != codes.OK {
				t.Fatalf("a call ended with %s", code)
			}
			replies++
		}
		b.signal(signal)
		<-b.exited
	}
	r.stop()
	report := verified(t, file, key)
	if report.Records != replies || report.Chains != 2 || report.Lost != 0 {
		t.Errorf("the report is %+v, expected %d records in 2 chains", report, replies)
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "has no end") {
		t.Errorf("the notes are %q, expected that one chain has no end", report.Notes)
	}
}

func TestNoReplyThatRequiresARecordIsSentWithoutACollector(t *testing.T) {
	t.Parallel()
	address, file := reserve(t), filepath.Join(t.TempDir(), "logs.json")
	b, key := startRecorded(t, nil, "--audit-otlp-endpoint", "http://"+address)
	conn := b.connect()
	if code := hashOnce(t, conn, "Default"); code != codes.Unavailable {
		t.Errorf("a call that requires a record ended with %s, expected Unavailable", code)
	}
	if code := hashOnce(t, conn, "Later"); code != codes.OK {
		t.Errorf("a call that requires no record ended with %s, expected OK", code)
	}
	b.awaitOutput(&b.stderr, "audit records cannot be written")
	r := startRecorder(t, address, file, "")
	b.awaitOutput(&b.stderr, "audit records are written again")
	if code := hashOnce(t, conn, "Default"); code != codes.OK {
		t.Errorf("a call with a collector ended with %s, expected OK", code)
	}
	b.stop()
	r.stop()
	if report := verified(t, file, key); report.Records != 3 || report.Lost != 0 || report.Unsigned != 0 {
		t.Errorf("the report is %+v, expected the records of all calls", report)
	}
}

// pause stops the process until it gets SIGCONT. It returns once each thread has stopped: until then
// one of them could answer a call.
func (p *process) pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	for deadline := time.After(waitLimit); ; {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
		running := slices.DeleteFunc(threads, func(file string) bool {
			text, err := os.ReadFile(file)
			return errors.Is(err, fs.ErrNotExist) || strings.Contains(string(text), "\nState:\tT")
		})
		if err == nil && len(running) == 0 {
			return
		}
		select {
		case <-deadline:
			p.t.Fatalf("the process does not stop: %q, %v", running, err)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestACollectorThatHangsAndRestartsHasNoDamagedChain(t *testing.T) {
	t.Parallel()
	address, file := reserve(t), filepath.Join(t.TempDir(), "logs.json")
	r := startRecorder(t, address, file, "")
	b, key := startRecorded(t, nil, "--audit-otlp-endpoint", "http://"+address)
	conn := b.connect()
	replies, calls := 0, 0
	call := func() codes.Code {
		code := hashOnce(t, conn, "Default")
		if calls++; code == codes.OK {
			replies++
		}
		return code
	}
	call()
	r.pause()
	if code := call(); code != codes.Unavailable {
		t.Errorf("a call while the collector hangs ended with %s, expected Unavailable", code)
	}
	r.signal(syscall.SIGCONT)
	b.awaitOutput(&b.stderr, "audit records are written again")
	call()
	r.stop()
	ended := make(chan codes.Code)
	go func() { ended <- hashOnce(t, conn, "Default") }()
	calls++
	r = startRecorder(t, address, file, "")
	if <-ended == codes.OK {
		replies++
	}
	for deadline := time.Now().Add(waitLimit); call() != codes.OK; {
		if time.Now().After(deadline) {
			t.Fatal("the restarted collector gets no records")
		}
	}
	b.stop()
	r.stop()
	if report := verified(t, file, key); report.Records < replies || report.Records > calls || report.Chains != 1 || report.Unsigned != 0 {
		t.Errorf("the report is %+v, expected the records of %d replies, and of %d calls at most, in one chain", report, replies, calls)
	}
}

func TestAnInjectedBrokerSendsRecordsToACollectorWhoseAuthorityItGets(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	certificate, key := authority.files(t, "collector")
	trusted, err := os.ReadFile(authority.file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(newAuthority(t).file)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "logs.json")
	r := startRecorder(t, reserve(t), file, fmt.Sprintf(", tls: {cert_file: %s, key_file: %s}", certificate, key))
	for sentence, test := range map[string]struct {
		bundle []byte
		want   codes.Code
	}{
		"its authority": {append(other, trusted...), codes.OK}, "another authority": {other, codes.Unavailable},
	} {
		t.Run(sentence, func(t *testing.T) {
			environment, _ := injectedBy(t, template.Template{Audit: template.Audit{Endpoint: "https://" + r.address, CABundle: string(test.bundle)}}, nil)
			b, _ := startRecorded(t, environment)
			if code := hashOnce(t, b.connect(), "Default"); code != test.want {
				t.Errorf("a call ended with %s, expected %s", code, test.want)
			}
			b.stop()
		})
	}
}
