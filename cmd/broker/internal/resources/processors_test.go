// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"
	"testing/fstest"
)

func TestTheProcessorLimitIsFound(t *testing.T) {
	for sentence, test := range map[string]struct {
		files fstest.MapFS
		want  float64
	}{
		"half a processor, version 2": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/cpu.max": file("50000 100000\n")}, 0.5},
		"no limit, version 2":         {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/cpu.max": file("max 100000\n")}, 0},
		"two processors, version 1": {fstest.MapFS{
			"proc/self/cgroup":                    file("3:cpu,cpuacct:/x\n"),
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  file("200000\n"),
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": file("100000\n"),
		}, 2},
		"no limit, version 1": {fstest.MapFS{
			"proc/self/cgroup":                    file("3:cpu,cpuacct:/x\n"),
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  file("-1\n"),
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": file("100000\n"),
		}, 0},
		"the lowest of a group and those above it": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/cpu.max": file("100000 100000\n"), "sys/fs/cgroup/a/b/cpu.max": file("max 100000\n"),
		}, 1},
		"a system without control groups": {fstest.MapFS{}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got, err := processorLimit(test.files); err != nil || got != test.want {
				t.Errorf("got %v and %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestAProcessorLimitThatCannotBeReadIsNamed(t *testing.T) {
	files := fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/cpu.max": file("some 100000\n")}
	const want = `the CPU limit of /sys/fs/cgroup is "some" in "100000", expected microseconds in microseconds`
	if _, err := processorLimit(files); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
