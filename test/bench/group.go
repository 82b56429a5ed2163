// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// group is a control group with a memory limit, of version 2 or version 1.
type group struct {
	dir     string
	version int
}

// The files of a group by its version.
var (
	limitFile = map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}
	peakFile  = map[int]string{1: "memory.max_usage_in_bytes", 2: "memory.peak"}
	killsFile = map[int]string{1: "memory.oom_control", 2: "memory.events"}
)

// newGroup makes a group below that of this program, or beside it where that is not in
// sight. An error says that the system does not let this program do so.
func newGroup(limit int64) (*group, error) {
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find the control group of this program: %w", err)
	}
	tried := []error{errors.New("this machine has no control group with a memory limit for this program")}
	for line := range strings.Lines(string(list)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(fields) != 3 {
			continue
		}
		version, mount := 2, "/sys/fs/cgroup"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			version, mount = 1, filepath.Join(mount, "memory")
		}
		for _, parent := range []string{fields[2], "/"} {
			g, err := makeGroup(filepath.Join(mount, parent), version, limit)
			if err == nil {
				return g, nil
			}
			tried = append(tried, err)
		}
	}
	return nil, errors.Join(tried...)
}

func makeGroup(parent string, version int, limit int64) (*group, error) {
	dir, err := os.MkdirTemp(parent, "crypto-broker-bench-")
	if err != nil {
		return nil, err
	}
	g := &group{dir: dir, version: version}
	if err := os.WriteFile(filepath.Join(dir, limitFile[version]), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return g, nil
}

// processes is the file that a process joins the group by.
func (g *group) processes() string { return filepath.Join(g.dir, "cgroup.procs") }

// remove removes it, once its processes have ended. The kernel may need a moment for
// that.
func (g *group) remove() error {
	var err error
	for range 50 {
		if err = os.Remove(g.dir); err == nil {
			return nil
		}
		<-time.After(20 * time.Millisecond)
	}
	return fmt.Errorf("remove the control group: %w", err)
}

// peak is the most memory that the group ever took, in bytes.
func (g *group) peak() (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, peakFile[g.version]))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// killed reports whether the system ended a process for want of memory.
func (g *group) killed() (bool, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, killsFile[g.version]))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found {
			return n != "0", nil
		}
	}
	return false, fmt.Errorf("%s has no line oom_kill", killsFile[g.version])
}
