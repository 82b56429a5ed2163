// SPDX-License-Identifier: Apache-2.0

// Package controlgroup gives each process of a measurement its own memory limit and share
// of the processors, as a kubelet does for each container. It needs Linux, and root outside
// of a container or in a privileged one.
package controlgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Controller is a resource that the kernel controls for the processes of a group.
type Controller string

// The controllers that measurements use.
const (
	Memory Controller = "memory"
	CPU    Controller = "cpu"
)

// present are files that exist in a group if the controller works, by version.
var present = map[Controller]map[int]string{
	Memory: {1: "memory.limit_in_bytes", 2: "memory.max"},
	CPU:    {1: "cpu.shares", 2: "cpu.weight"},
}

// Files that report the peak of memory and the killed processes, by version.
var (
	peakFile  = map[int]string{1: "memory.max_usage_in_bytes", 2: "memory.peak"}
	killsFile = map[int]string{1: "memory.oom_control", 2: "memory.events"}
)

// Prefix begins the names of groups.
const Prefix = "crypto-broker-"

// processes is the file by which a process joins a group.
const processes = "cgroup.procs"

// Group is a control group. Version 1 of the system has one for each controller, version
// 2 has one for all.
type Group struct {
	controllers []Controller
	dirs        []string // one for each of the controllers, or one for all
	version     int
}

// New creates a group with controllers below the group of this program, or beside it if
// that group is not visible. Groups with the controller CPU have equal shares of the
// processors, however many processes each has. It returns an error if the system does not
// allow it.
func New(controllers ...Controller) (*Group, error) {
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find the control group of this program: %w", err)
	}
	g, second := newSecond(string(list), controllers)
	if second == nil {
		return g, nil
	}
	g, first := newFirst(string(list), controllers)
	if first == nil {
		return g, nil
	}
	return nil, fmt.Errorf("a control group for %v is needed and cannot be made: run this as root, outside of a container or in a privileged one: %w",
		controllers, errors.Join(second, first))
}

// newSecond creates a group of version 2. list is this program's /proc/self/cgroup.
func newSecond(list string, controllers []Controller) (*Group, error) {
	dir, err := newDir("", "", list, func(dir string) error {
		for _, c := range controllers {
			if _, err := os.Stat(filepath.Join(dir, present[c][2])); err != nil {
				return err
			}
		}
		return nil
	})
	return &Group{controllers, []string{dir}, 2}, err
}

// newFirst creates a group of version 1. list is this program's /proc/self/cgroup.
func newFirst(list string, controllers []Controller) (*Group, error) {
	g := &Group{controllers: controllers, version: 1}
	for _, c := range controllers {
		dir, err := newDir(string(c), string(c), list, func(dir string) error {
			_, err := os.Stat(filepath.Join(dir, present[c][1]))
			return err
		})
		if err != nil {
			return nil, errors.Join(err, g.Remove())
		}
		g.dirs = append(g.dirs, dir)
	}
	return g, nil
}

// newDir creates a folder in the hierarchy of a controller, which is below mount.
func newDir(controller, mount, list string, check func(dir string) error) (string, error) {
	tried := []error{fmt.Errorf("this program is in no hierarchy with the controller %q", controller)}
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(fields) != 3 || !slices.Contains(strings.Split(fields[1], ","), controller) {
			continue
		}
		for _, parent := range []string{fields[2], "/"} {
			dir, err := os.MkdirTemp(filepath.Join("/sys/fs/cgroup", mount, parent), Prefix)
			if err == nil {
				if err = check(dir); err == nil {
					return dir, nil
				}
				err = errors.Join(err, os.Remove(dir))
			}
			tried = append(tried, err)
		}
	}
	return "", errors.Join(tried...)
}

// Limit sets the memory limit of the group, in bytes. The kernel ends one of the group's
// processes if they take more together. The group needs the controller Memory.
func (g *Group) Limit(bytes int64) error {
	return os.WriteFile(g.file(Memory, present[Memory][g.version]), []byte(strconv.FormatInt(bytes, 10)), 0o644)
}

// file returns the path of a controller's file.
func (g *Group) file(controller Controller, name string) string {
	dir := g.dirs[0]
	if len(g.dirs) > 1 {
		dir = g.dirs[slices.Index(g.controllers, controller)]
	}
	return filepath.Join(dir, name)
}

// Command returns the command line that starts a program in the group, from the program's
// path and its arguments. The command line needs a shell.
func (g *Group) Command(program ...string) []string {
	const join = `while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@"`
	line := []string{"/bin/sh", "-c", join, "sh"}
	for _, dir := range g.dirs {
		line = append(line, filepath.Join(dir, processes))
	}
	return append(append(line, "--"), program...)
}

// Join moves this program into the group.
func (g *Group) Join() error { return move(g.dirs) }

// Leave moves this program into the group above.
func (g *Group) Leave() error {
	var above []string
	for _, dir := range g.dirs {
		above = append(above, filepath.Dir(dir))
	}
	return move(above)
}

func move(dirs []string) error {
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, processes), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the group once its processes have ended. The kernel may need a moment
// for that.
func (g *Group) Remove() error {
	var failed error
	for _, dir := range g.dirs {
		err := os.Remove(dir)
		for range 50 {
			if err == nil {
				break
			}
			<-time.After(20 * time.Millisecond)
			err = os.Remove(dir)
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("remove the control group: %w", failed)
	}
	return nil
}

// Peak returns the most memory that the group has ever taken, in bytes.
func (g *Group) Peak() (int64, error) {
	text, err := os.ReadFile(g.file(Memory, peakFile[g.version]))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// Kills returns how many processes the kernel ended because memory ran out.
func (g *Group) Kills() (int, error) {
	text, err := os.ReadFile(g.file(Memory, killsFile[g.version]))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found {
			return strconv.Atoi(n)
		}
	}
	return 0, fmt.Errorf("%s has no line oom_kill", killsFile[g.version])
}
