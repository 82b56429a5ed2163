// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// limited is a control group, version 2 or version 1.
type limited struct {
	dir     string
	version int
}

// limit makes a control group in which a controller has limits, files by version.
// It returns nil if the test may not.
func limit(t *testing.T, controller string, limits map[int]map[string]string) *limited {
	t.Helper()
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		g := limited{version: 2}
		mount := "/sys/fs/cgroup"
		if fields[1] != "" {
			g.version, mount = 1, filepath.Join(mount, controller)
			if !strings.Contains(","+fields[1]+",", ","+controller+",") {
				continue
			}
		}
		// Below the group of the test, or next to it if the group is not visible.
		for _, parent := range []string{fields[2], "/"} {
			if g.dir, err = os.MkdirTemp(filepath.Join(mount, parent), "crypto-broker-"); err == nil {
				break
			}
		}
		if err != nil {
			continue // not the hierarchy of this controller, or the test may not create groups in it
		}
		t.Cleanup(func() {
			if err := os.Remove(g.dir); err != nil {
				t.Error(err)
			}
		})
		written := true
		for name, value := range limits[g.version] {
			written = written && os.WriteFile(filepath.Join(g.dir, name), []byte(value), 0o644) == nil
		}
		if written {
			return &g
		}
	}
	return nil
}

// limitMemory limits memory in bytes.
func limitMemory(t *testing.T, bytes int64) *limited {
	t.Helper()
	text := strconv.FormatInt(bytes, 10)
	return limit(t, "memory", map[int]map[string]string{1: {"memory.limit_in_bytes": text}, 2: {"memory.max": text}})
}

// peak is the most memory that the group ever used, in bytes.
func (g *limited) peak(t *testing.T) string {
	t.Helper()
	return g.read(t, map[int]string{1: "memory.max_usage_in_bytes", 2: "memory.peak"}[g.version])
}

// kills has a line oom_kill with how many processes the system killed.
func (g *limited) kills(t *testing.T) string {
	t.Helper()
	return g.read(t, map[int]string{1: "memory.oom_control", 2: "memory.events"}[g.version])
}

func (g *limited) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// startIn starts a broker in a control group.
func startIn(t *testing.T, g *limited, env []string, args ...string) *process {
	t.Helper()
	const shell = `echo $$ > "$0" && exec "$@"`
	return startProgram(t, env, "/bin/sh", append([]string{"-c", shell, filepath.Join(g.dir, "cgroup.procs"), binary}, args...)...)
}

// mostResident is the largest resident set that a broker ever had, in bytes.
func (p *process) mostResident() int64 { return p.resident("VmHWM:") }

// resident reads a line of the process's status in bytes.
func (p *process) resident(name string) int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	p.t.Fatalf("the status has no %s", name)
	return 0
}
