// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// said is one line of a broker's log.
type said struct {
	Msg, Sampler, Status     string
	To, Sockets              []string
	Keys, Unusable, Revision int
}

// logOf starts a broker with arguments and returns the lines of its log by their messages. It ends the broker once it listens.
func logOf(t *testing.T, arguments func(dir, status string) ([]string, error)) (map[string]said, []string) {
	t.Helper()
	programs, err := build(t.Context(), options{root: filepath.Join("..", "..")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := programs.remove(); err != nil {
			t.Error(err)
		}
	})
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	given, err := arguments(programs.dir, address)
	if err != nil {
		t.Fatal(err)
	}
	broker := exec.CommandContext(t.Context(), programs.broker, append(given, "--log-level=info")...)
	log, err := broker.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	found := map[string]said{}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var l said
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		found[l.Msg] = l
		if l.Msg == "listening" {
			if err := broker.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := broker.Wait(); err != nil {
		t.Error(err)
	}
	if keys := found["keys loaded"]; keys.Keys != 1 || keys.Unusable != 0 {
		t.Errorf("keys: %+v", keys)
	}
	if l := found["listening"]; len(l.Sockets) != 1 || filepath.Base(filepath.Dir(l.Sockets[0])) != caller || l.Status != address {
		t.Errorf("sockets: %+v", l)
	}
	return found, given
}

func TestTheBrokerIsMeasuredWithEverythingOn(t *testing.T) {
	found, _ := logOf(t, everything)
	if spans := found["exporting spans"]; spans.Sampler != "parentbased_traceidratio 0" || len(spans.To) != 1 {
		t.Errorf("traces: %+v", spans)
	}
}

func TestTheBrokerIsMeasuredWithARecordOfEachCall(t *testing.T) {
	programs, err := build(t.Context(), options{root: filepath.Join("..", "..")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := programs.remove(); err != nil {
			t.Error(err)
		}
	})
	server, _, err := startBroker(t.Context(), options{}, programs, withRecords)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dial(server.socket)
	if err != nil {
		t.Fatal(err)
	}
	request := &v1.HashDataRequest{Profile: operations.SHA256, Input: make([]byte, 1234)}
	const calls = 10
	for range calls {
		if _, err := v1.NewCryptoServiceClient(conn).HashData(t.Context(), request); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(conn.Close(), server.ask()); err != nil {
		t.Fatal(err)
	}
	<-server.exited
	t.Cleanup(func() {
		if err := server.remove(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(server.socket))), "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// The calls by which the benchmark sees that the broker serves have records as well.
	if n := bytes.Count(text, fmt.Appendf(nil, `"request.size":%d,`, proto.Size(request))); n != calls {
		t.Errorf("there are %d records, expected %d", n, calls)
	}
}

func TestTheBrokerOfAPodIsMeasuredWithTheFlagsThatTheWebhookSets(t *testing.T) {
	found, given := logOf(t, injected)
	if loaded := found["profiles loaded"]; loaded.Revision != 1 {
		t.Errorf("signed profiles: %+v, want the profiles of revision 1", loaded)
	}
	want := append(flagsOf(t, "testdata/pods/a-pod-with-keys-for-its-broker.golden.yaml", "    - --"),
		contract.TrustedKeysFlag, contract.StateDirFlag, contract.ProfilesAudienceFlag, contract.LowestRevisionFlag)
	got := make([]string, len(given))
	for i, argument := range given {
		got[i], _, _ = strings.Cut(strings.TrimPrefix(argument, "--"), "=")
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got the flags %q, want %q", got, want)
	}
}

// flagsOf finds the flags that a file of the webhook has behind a text.
func flagsOf(t *testing.T, file, before string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "webhook", "injection", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for line := range strings.Lines(string(text)) {
		if _, rest, found := strings.Cut(line, before); found {
			name, _, _ := strings.Cut(rest, "=")
			flags = append(flags, name)
		}
	}
	if len(flags) == 0 {
		t.Fatalf("%s has no flag", file)
	}
	return flags
}

func TestAServerStartsInAControlGroupOfItsOwnWhereThereAreAny(t *testing.T) {
	programs := &programs{grouped: canGroup()}
	p := newProcess(options{}, t.TempDir(), exec.Command("cat"))
	if err := p.bound(programs, podMemory); err != nil {
		t.Fatal(err)
	}
	if (p.group != nil) != programs.grouped {
		t.Fatalf("the group is %v, and whether there are any: %v", p.group, programs.grouped)
	}
	if p.group == nil {
		return
	}
	input, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.ask = input.Close
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	// cat runs within the group, so its output shows the group.
	if _, err := input.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.cmd.Process.Pid)); err != nil || !strings.Contains(string(groups), "/"+controlgroup.Prefix) {
		t.Errorf("the process is in the groups %q, want one that begins with %q (%v)", groups, controlgroup.Prefix, err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
