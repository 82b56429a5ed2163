// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// controlGroupMount is where systems mount control groups.
const controlGroupMount = "sys/fs/cgroup"

// eachControlGroup visits the process's control group of a controller and those
// above it, as far as they are in sight; of version 2, and of version 1 where the
// system has that. In a container its own group is the root of the mount, whatever
// the kernel calls it.
func eachControlGroup(root fs.FS, controller string, visit func(dir string, version int) error) error {
	const list = "proc/self/cgroup"
	text, err := readControl(root, list)
	if err != nil || text == "" {
		return err // a system without control groups has no list
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		// hierarchy:controllers:path, without controllers in version 2
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			return fmt.Errorf("/%s has the line %q, expected hierarchy:controllers:path", list, line)
		}
		mount, version := controlGroupMount, 2
		if fields[1] != "" {
			mount, version = path.Join(controlGroupMount, controller), 1
			if !slices.Contains(strings.Split(fields[1], ","), controller) {
				continue
			}
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if err := visit(path.Join(mount, group), version); err != nil {
				return err
			}
			if group == "/" {
				break
			}
		}
	}
	return nil
}

// readControl reads a file less the space around it, nothing where there is no such
// file: the group is not in sight, or the root, which has no limits.
func readControl(root fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read /%s: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
