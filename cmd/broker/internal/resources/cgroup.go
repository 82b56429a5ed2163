// SPDX-License-Identifier: Apache-2.0

package resources

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

// eachControlGroup visits the process's control group of a controller and its visible
// parents, of version 2 and, if the system has it, of version 1. In a container its own
// group is the root of the mount, whatever path the kernel reports.
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

// readControl returns the content of a file without surrounding space. It returns an
// empty text if the file does not exist: then the group is not visible, or it is the
// root, which has no limits.
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
