// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// installed is the unit with the paths of a folder.
func installed(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guides, "systemd", "crypto-broker.service"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("/usr/local/bin/", folder+"/", "/run/crypto-broker", folder+"/run", "/etc/crypto-broker", folder).Replace(string(text))
}

func TestSystemdKnowsEverythingInTheUnitAndRatesItAsSafe(t *testing.T) {
	root := temporary(t)
	unit := filepath.Join(root, "crypto-broker.service")
	programs(t, root)
	if err := os.WriteFile(unit, []byte(installed(t, root)), 0o644); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
	// The scale is 0 (safe) to 100 (unsafe); above 10 systemd does not call it safe any more.
	if output, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=10", "--no-pager", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, output)
	}
}

func TestTheCommandsOfTheUnitServeTheGroupOfCallers(t *testing.T) {
	folder := temporary(t)
	programs(t, folder)
	if err := errors.Join(
		os.Chmod(folder, 0o755),
		os.CopyFS(filepath.Join(folder, "profiles"), os.DirFS(filepath.Join(guides, "compose", "profiles"))),
		os.Mkdir(filepath.Join(folder, "run"), 0o750), os.Chown(filepath.Join(folder, "run"), 61184, 61184),
	); err != nil {
		t.Fatal(err)
	}
	unit := installed(t, folder)
	as := func(user, groups, commandLine string) *exec.Cmd {
		args := append([]string{"--reuid=" + user, "--regid=" + user, "--groups=" + groups, "--no-new-privs", "--bounding-set=-all"}, strings.Fields(commandLine)...)
		return exec.Command("setpriv", args...)
	}
	line := func(name string) string {
		found := regexp.MustCompile("(?m)^" + name + "=(.*)$").FindStringSubmatch(unit)
		if found == nil {
			t.Fatalf("the unit has no %s", name)
		}
		return found[1]
	}
	var log bytes.Buffer
	broker := as("61184", line("SupplementaryGroups"), line("ExecStart"))
	broker.Stderr = &log
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(broker.Process.Signal(syscall.SIGTERM), broker.Wait()); err != nil || t.Failed() {
			t.Errorf("the broker ended with %v:\n%s", err, log.String())
		}
	})
	hash := folder + "/crypto-broker hash-data Welcome --output text --socket " + folder + "/run/crypto-broker-server.sock"
	if output, err := as("2000", line("SupplementaryGroups"), hash).CombinedOutput(); err != nil || string(output) != digest+"\n" {
		t.Errorf("one of the group: %v, %q", err, output)
	}
	if output, err := as("61184", "61184", line("ExecStartPost")).CombinedOutput(); err != nil || string(output) != "SERVING\n" {
		t.Errorf("the unit's own check: %v, %q", err, output)
	}
	for timeout := 200 * time.Millisecond; ; timeout *= 4 {
		output, err := as("2000", "2000", hash+" --timeout "+timeout.String()).CombinedOutput()
		// On a busy machine no attempt to connect may end within a short timeout.
		if strings.Contains(string(output), "did not answer within") && timeout < waitLimit {
			continue
		}
		if err == nil || !strings.Contains(string(output), "permission denied") {
			t.Errorf("one outside the group: %v, %q", err, output)
		}
		break
	}
}
