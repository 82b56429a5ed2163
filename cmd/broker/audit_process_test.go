// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// auditProfile requires records.
const auditProfile = "- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n  Audit: {Level: all, Required: true}\n"

// newAuditPlace returns a place with a profile that requires records, the arguments of a broker
// that writes them to a file, and the name of the file.
func newAuditPlace(t *testing.T, more ...string) (at *place, args []string, file string) {
	t.Helper()
	at = newPlace(t, "")
	at.write(auditProfile)
	key := filepath.Join(t.TempDir(), "audit.key")
	der, err := x509.MarshalPKCS8PrivateKey(auditKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "audit.jsonl")
	return at, append(at.args("--audit-file", file, "--audit-key", key), more...), file
}

var auditKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// verified returns what an audit file has, which has to be intact.
func verified(t *testing.T, file string) audit.Report {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	v := audit.NewVerifier(auditKey.Public())
	if err := v.Read(file, text); err != nil {
		t.Error(err)
	}
	return v.Report()
}

func TestRecordsOfAllRepliesAreInTheFileOfABrokerThatIsKilled(t *testing.T) {
	at, args, file := newAuditPlace(t, "--audit-sync=each")
	replies := 0
	for range 3 {
		broker := start(t, args...)
		broker.listening()
		conn := connect(t, at.socket(""))
		for range 20 {
			if _, err := hashes(t, conn); err != nil {
				t.Fatal(err)
			}
			replies++
		}
		broker.kill(syscall.SIGKILL)
		<-broker.exited
	}
	if r := verified(t, file); r.Records != replies || r.Chains != 3 || r.Lost != 0 {
		t.Errorf("the file has %d records in %d chains, expected the %d of all replies in 3", r.Records, r.Chains, replies)
	}
}

func TestABrokerThatEndsSignsAllRecords(t *testing.T) {
	at, args, file := newAuditPlace(t)
	broker := start(t, args...)
	broker.listening()
	if _, err := hashes(t, connect(t, at.socket(""))); err != nil {
		t.Fatal(err)
	}
	broker.stop()
	if r := verified(t, file); r.Records != 1 || r.Unsigned != 0 || len(r.Notes) != 0 {
		t.Errorf("the report is %+v, expected one record that is signed, and no note", r)
	}
}

func TestWhileTheFileCannotGrowCallsThatRequireRecordsAreRefused(t *testing.T) {
	at, args, file := newAuditPlace(t)
	broker := start(t, append(args, "--status-address=127.0.0.1:0")...)
	status := broker.listening()
	conn := connect(t, at.socket(""))
	if _, err := hashes(t, conn); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	// A limit of the file size simulates a full disk: a write fails after a part of its bytes.
	limit := func(size uint64) {
		t.Helper()
		var before unix.Rlimit
		if err := unix.Prlimit(broker.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &before); err != nil {
			t.Fatal(err)
		}
		if err := unix.Prlimit(broker.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(uint64(info.Size()) + 100) //nolint:gosec // a size is not negative
	for range 3 {
		if _, err := hashes(t, conn); grpcstatus.Code(err) != codes.Unavailable {
			t.Errorf("the call ends with %v, expected Unavailable", err)
		}
	}
	broker.logged("audit records cannot be written; calls that require one are refused, and other records are lost", 1)
	limit(1 << 30)
	if _, err := hashes(t, conn); err != nil {
		t.Errorf("there is room again, and the call ends with %v", err)
	}
	broker.logged("audit records are written again", 1)
	if _, body := get(t, status, "/metrics"); !strings.Contains(body, `crypto_broker_audit_records_total{result="lost"} 3`) ||
		!strings.Contains(body, `crypto_broker_audit_records_total{result="written"} 2`) {
		t.Error("the metrics do not have 3 lost and 2 written records")
	}
	broker.stop()
	if r := verified(t, file); r.Records != 2 || r.Lost != 3 {
		t.Errorf("the file has %d records and says that %d are lost, expected 2 and 3", r.Records, r.Lost)
	}
}

func TestTheLastLineIsThatTheBrokerHasStopped(t *testing.T) {
	at := newPlace(t, "")
	at.write(auditProfile)
	broker := start(t, at.args()...) // whose audit records are lines of standard error as well
	broker.listening()
	if _, err := hashes(t, connect(t, at.socket(""))); err != nil {
		t.Fatal(err)
	}
	broker.kill(syscall.SIGTERM)
	broker.ends(0)
	lines := strings.Split(strings.TrimSpace(string(broker.raw())), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"msg":"stopped"`) {
		t.Errorf("the last line is %s", last)
	}
}

func TestWithoutAFileRecordsAreLinesOfStandardError(t *testing.T) {
	at := newPlace(t, "")
	at.write(auditProfile)
	broker := start(t, at.args()...)
	broker.listening()
	if _, err := hashes(t, connect(t, at.socket(""))); err != nil {
		t.Fatal(err)
	}
	broker.stop()
	events := map[any]int{}
	for _, l := range broker.log() {
		events[l["event"]]++
	}
	if events["start"] != 1 || events["call"] != 1 || events["end"] != 1 {
		t.Errorf("standard error has the events %v, expected a start, a call and an end", events)
	}
}
