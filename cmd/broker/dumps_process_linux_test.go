// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
)

func TestTheMemoryOfABrokerIsNoPartOfADump(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := asPod(t, at, os.ModePerm, "--log-level=debug")
	status := broker.listening()
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", broker.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^Max core file size +0 +0 +bytes`).Match(limits) {
		t.Errorf("the limits are\n%s", limits)
	}
	for _, line := range broker.log() {
		if line["level"] == "WARN" || line["error"] != nil {
			t.Errorf("logged %v", line)
		}
	}
	// The metrics of the process come from /proc.
	if _, metrics := get(t, status, "/metrics"); !regexp.MustCompile(`(?m)^process_open_fds [1-9]`).MatchString(metrics) {
		t.Error("/metrics has no process_open_fds")
	}
	if os.Geteuid() != 0 {
		return // only root can become the user of the broker
	}
	for _, command := range [][]string{{"cat", "environ"}, {"cat", "maps"}, {"head", "-c0", "mem"}, {"ls", "root/"}, {"ls", "fd/"}} {
		reader := exec.CommandContext(t.Context(), command[0], command[1:]...)
		reader.Dir = fmt.Sprintf("/proc/%d", broker.cmd.Process.Pid)
		reader.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532, Groups: []uint32{60471}}}
		if exit := (*exec.ExitError)(nil); !errors.As(reader.Run(), &exit) {
			t.Errorf("another process of the broker's user can %v in its /proc", command)
		}
	}
}
