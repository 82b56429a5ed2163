// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// systemCalls returns the system calls that the lines SystemCallFilter of a unit allow. The lines apply in their order: a line adds
// a list, or removes a list after a ~ (systemd.exec(5)).
func systemCalls(t *testing.T, unit string) []string {
	t.Helper()
	allowed := map[string]bool{}
	for _, line := range regexp.MustCompile("(?m)^SystemCallFilter=(.*)$").FindAllStringSubmatch(unit, -1) {
		list, taken := strings.CutPrefix(line[1], "~")
		for _, name := range strings.Fields(list) {
			for _, call := range expanded(t, name) {
				allowed[call] = !taken
			}
		}
	}
	maps.DeleteFunc(allowed, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(allowed))
}

// expanded returns the system calls of a set, including the sets within it.
func expanded(t *testing.T, name string) (calls []string) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	output, err := exec.CommandContext(t.Context(), "systemd-analyze", "syscall-filter", "--no-pager", name).Output()
	if err != nil {
		t.Fatalf("systemd-analyze syscall-filter %s: %v", name, err)
	}
	for line := range strings.Lines(string(output)) {
		if entry := strings.TrimSpace(line); entry != "" && entry != name && !strings.HasPrefix(entry, "#") {
			calls = append(calls, expanded(t, entry)...)
		}
	}
	return calls
}

// The engine ends a container by the same means as systemd a service: a filter of
// the kernel that kills the process at a call that is not in the list.
func TestTheBrokerOfTheUnitNeedsNoSystemCallThatItsFilterKeepsFromIt(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(guides, "systemd", "crypto-broker.service"))
	if err != nil {
		t.Fatal(err)
	}
	filter, err := json.Marshal(map[string]any{
		"defaultAction": "SCMP_ACT_KILL_PROCESS",
		"syscalls":      []any{map[string]any{"names": systemCalls(t, string(text)), "action": "SCMP_ACT_ALLOW"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile("(?m)^ExecStart=/usr/local/bin/broker (.*)$").FindStringSubmatch(string(text))
	if start == nil {
		t.Fatal("the unit does not start a broker")
	}
	e := newEngine(t)
	images(t, e)
	programs(t, e.folder)
	e.write("filter.json", 0o644, "%s", filter)
	sockets := filepath.Join(e.folder, "sockets")
	if err := errors.Join(os.Chmod(e.folder, 0o755), os.Mkdir(sockets, 0o750), os.Chown(sockets, 61184, 61184)); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"run", "--detach", "--name", "broker", "--cgroup-parent=/" + e.cgroup, "--network=none", "--read-only", "--cap-drop=ALL",
		"--security-opt=no-new-privileges:true", "--security-opt=seccomp=" + filepath.Join(e.folder, "filter.json"),
		"--user=61184:61184", "--group-add=60471", "--volume=" + sockets + ":/run/crypto-broker",
		"--volume=" + filepath.Join(guides, "compose", "profiles") + ":/etc/crypto-broker/profiles:ro", "localhost/crypto-broker/broker:latest",
	}
	e.podman(append(args, strings.Fields(start[1])...)...)
	eventually(t, "the broker serves, or has ended", func(ctx context.Context) bool {
		if state := e.podman("inspect", "--format={{.State.Status}}", "broker"); strings.TrimSpace(state) != "running" {
			t.Fatalf("the broker is %s%s", state, e.podman("inspect", "--format={{.State.ExitCode}}", "broker"))
		}
		hash := exec.CommandContext(ctx, "setpriv", "--reuid=2000", "--regid=2000", "--groups=60471",
			filepath.Join(e.folder, "crypto-broker"), "hash-data", "Welcome", "--output", "text", "--socket", filepath.Join(sockets, "crypto-broker-server.sock"))
		output, err := hash.Output()
		return err == nil && string(output) == digest+"\n"
	})
	e.podman("stop", "--time=20", "broker")
	if code := strings.TrimSpace(e.podman("inspect", "--format={{.State.ExitCode}}", "broker")); code != "0" {
		t.Errorf("the broker ended with exit code %s", code)
	}
}
