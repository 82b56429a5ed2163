// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the processor times in /proc/PID/stat, on every Linux.
const tick = 10 * time.Millisecond

// process is the id of a process whose resources are read.
type process int

// childNamed returns the child of this process with a name.
func childNamed(name string) (process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		id, command, fields, err := readStat(file)
		if err == nil && command == name && fields[1] == strconv.Itoa(os.Getpid()) {
			return process(id), nil
		}
	}
	return 0, fmt.Errorf("no child process has the name %s", name)
}

// readStat reads /proc/PID/stat. The fields are those after the name: state, parent, …
func readStat(file string) (id int, command string, fields []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, "", nil, err
	}
	before, rest, _ := strings.Cut(string(text), " (")
	end := strings.LastIndex(rest, ") ") // a name may have parentheses
	if id, err = strconv.Atoi(before); err != nil || end < 0 {
		return 0, "", nil, fmt.Errorf("%s has an unknown form", file)
	}
	fields = strings.Fields(rest[end+2:])
	if len(fields) < 13 {
		return 0, "", nil, fmt.Errorf("%s has %d fields, expected more", file, len(fields))
	}
	return id, rest[:end], fields, nil
}

// cpu returns the processor time of the process.
func (p process) cpu() (time.Duration, error) {
	_, _, fields, err := readStat(fmt.Sprintf("/proc/%d/stat", p))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// peak returns the most resident memory in bytes since resetPeak.
func (p process) peak() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, is := strings.CutPrefix(line, "VmHWM:"); is {
			var kib int64
			_, err := fmt.Sscan(value, &kib)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmHWM", p)
}

// resetPeak makes what is resident now the peak.
func (p process) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p), []byte("5"), 0)
}
