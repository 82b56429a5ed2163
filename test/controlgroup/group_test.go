// SPDX-License-Identifier: Apache-2.0

package controlgroup_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
)

func TestAProgramIsInAGroupForEachControllerUntilItIsRemoved(t *testing.T) {
	for name, controllers := range map[string][]controlgroup.Controller{
		"memory":                {controlgroup.Memory},
		"processors":            {controlgroup.CPU},
		"memory and processors": {controlgroup.Memory, controlgroup.CPU},
	} {
		t.Run(name, func(t *testing.T) {
			group, err := controlgroup.New(controllers...)
			if err != nil { // this machine may not allow control groups; then the error says so
				if !strings.Contains(err.Error(), "run this as root") {
					t.Fatal(err)
				}
				return
			}
			line := group.Command("cat")
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Stderr = os.Stderr
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// cat runs within the group, so its output shows the group.
			fmt.Fprintln(input, "hello")
			if text, err := bufio.NewReader(output).ReadString('\n'); text != "hello\n" {
				t.Errorf("the program answers %q (%v)", text, err)
			}
			file := fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)
			for _, controller := range controllers {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if !inGroup(string(text), string(controller)) {
					t.Errorf("the program is in the groups %s, want one of its own for %s", text, controller)
				}
			}
			if err := input.Close(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if err := group.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

// inGroup reports whether /proc/self/cgroup has a group of ours for a controller.
func inGroup(list, controller string) bool {
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if (fields[1] == "" || fields[1] == controller) && strings.Contains(fields[2], "/"+controlgroup.Prefix) {
			return true
		}
	}
	return false
}
