// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// TestTheBrokerIsMeasuredWithEverythingOn starts it with the arguments of the
// measurements and reads in its log what is on.
func TestTheBrokerIsMeasuredWithEverythingOn(t *testing.T) {
	programs, err := build(t.Context(), options{root: filepath.Join("..", "..")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := programs.remove(); err != nil {
			t.Error(err)
		}
	})
	address, err := freeAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(programs.dir, "Profiles.yaml"), operations.Profiles, 0o600); err != nil {
		t.Fatal(err)
	}
	arguments, err := everything(programs.dir, address)
	if err != nil {
		t.Fatal(err)
	}
	broker := exec.CommandContext(t.Context(), programs.broker, append(arguments, "--log-level", "info")...)
	log, err := broker.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Msg, Sampler, Status string
		To, Sockets          []string
		Keys, Unusable       int
	}
	said := map[string]line{}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		said[l.Msg] = l
		if l.Msg == "listening" {
			if err := broker.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := broker.Wait(); err != nil {
		t.Error(err)
	}
	if spans := said["exporting spans"]; spans.Sampler != "parentbased_traceidratio 0" || len(spans.To) != 1 {
		t.Errorf("traces: %+v", spans)
	}
	if keys := said["keys loaded"]; keys.Keys != 1 || keys.Unusable != 0 {
		t.Errorf("keys: %+v", keys)
	}
	if l := said["listening"]; len(l.Sockets) != 1 || filepath.Base(filepath.Dir(l.Sockets[0])) != caller || l.Status != address {
		t.Errorf("sockets: %+v", l)
	}
}
